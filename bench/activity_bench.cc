// Cost of showing an operation on the status page.
#include <benchmark/benchmark.h>

#include "base/status/activity.h"
#include "base/status/status_page.h"

namespace rankrun {
namespace {

void Operation(benchmark::State& state, const StatusPage* page) {
  Activity activity(page, "world", 4);
  ActivityRecord record{.kind = 1, .count = 16, .fingerprint = 17};
  for (auto _ : state) {
    record.number += 1;
    activity.Enter(record);
    benchmark::ClobberMemory();
    activity.Complete();
  }
}

void EnterAndComplete(benchmark::State& state) {
  auto page = StatusPage::Create();
  if (!page) return state.SkipWithError("no page");
  Operation(state, &*page);
}
BENCHMARK(EnterAndComplete);

void WithoutAPage(benchmark::State& state) { Operation(state, nullptr); }
BENCHMARK(WithoutAPage);

}  // namespace
}  // namespace rankrun
