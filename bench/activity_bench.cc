// Cost of showing an operation on the status page, of recording it beside the page, and of
// tracing it.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "base/trace/trace_writer.h"

namespace rankrun {
namespace {

// Each operation of a collective is on the page; `recording` says whether it is recorded, too.
void Operation(benchmark::State& state, const StatusPage* page, Activity::Recording recording) {
  Activity activity(page, "world", 4);
  ActivityRecord record{.kind = 1, .count = 16, .fingerprint = 17};
  for (auto _ : state) {
    record.number += 1;
    activity.Enter(record, recording);
    benchmark::ClobberMemory();
    activity.Complete();
  }
}

void EnterAndComplete(benchmark::State& state) {
  auto page = StatusPage::Create();
  if (!page) return state.SkipWithError("no page");
  Operation(state, &*page, Activity::Recording::kNo);
}
BENCHMARK(EnterAndComplete);

void EnterAndCompleteRecorded(benchmark::State& state) {
  auto page = StatusPage::Create();
  if (!page) return state.SkipWithError("no page");
  Operation(state, &*page, Activity::Recording::kYes);
}
BENCHMARK(EnterAndCompleteRecorded);

void RecordedMessage(benchmark::State& state) {
  auto page = StatusPage::Create();
  if (!page) return state.SkipWithError("no page");
  Activity activity(&*page, "world", 4);
  const ActivityRecord record{.kind = 10, .root = 1, .count = 16};
  for (auto _ : state) {
    const FlightEntry entry = activity.recorder().Begin(record, 0);
    benchmark::ClobberMemory();
    FlightRecorder::End(entry, true);
  }
}
BENCHMARK(RecordedMessage);

void WithoutAPage(benchmark::State& state) { Operation(state, nullptr, Activity::Recording::kYes); }
BENCHMARK(WithoutAPage);

// In a file of the folder for temporary files. Not more than fits in a trace.
void BeginAndEndInATrace(benchmark::State& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "activity_bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder");
  {
    auto writer = TraceWriter::Create(folder, {.rank = 0, .attempt = 0, .run_id = "bench"});
    if (!writer) return state.SkipWithError("no trace");
    TraceRecord record{};
    record.numbers = PackedKinds(1, 0, 0, -1);
    for (auto _ : state) {
      record.number += 1;
      TraceRecord* begun = (*writer)->Begin(record);
      benchmark::ClobberMemory();
      if (begun != nullptr) (*writer)->End(begun);
    }
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(BeginAndEndInATrace)->Iterations(3'000'000);

}  // namespace
}  // namespace rankrun
