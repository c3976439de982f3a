// Pure parts on the path of a start or a request.

#include <benchmark/benchmark.h>

#include "agent/lifecycle/worker_group.h"
#include "agent/output/line_buffer.h"
#include "agent/worker/worker_environment.h"

namespace rankrun::agent {
namespace {

void WorkerEnvironmentOf60Variables(benchmark::State& state) {
  JobSpec spec;
  for (int i = 0; i < 60; ++i)
    spec.environment.push_back("VARIABLE_" + std::to_string(i) + "=value");
  const WorkerEnvironment environment(spec, {.node = PlaceAlone(spec, 0, 29500)});
  const WorkerPlace place{
      .local_rank = 3, .threads = 8, .error_file = "/tmp/error", .status_path = "/proc/1/fd/9"};
  for (auto _ : state) benchmark::DoNotOptimize(environment.Of(place));
}
BENCHMARK(WorkerEnvironmentOf60Variables);

void StepOfAWorkersExit(benchmark::State& state) {
  GroupPolicy policy{.workers = 8};
  GroupState running{.phase = Phase::kRunning, .attempt = 0, .alive = 8};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Step(policy, running, WorkerEnded{.local_rank = 0, .failed = true}, TimePoint{}));
  }
}
BENCHMARK(StepOfAWorkersExit);

void LinesOfA64KiBRead(benchmark::State& state) {
  std::string bytes;
  while (bytes.size() < 64 * 1024) bytes += "step 1000 loss 1.234 bytes/s 123456789\n";
  for (auto _ : state) {
    LineBuffer lines;
    benchmark::DoNotOptimize(lines.Add(bytes));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(LinesOfA64KiBRead);

}  // namespace
}  // namespace rankrun::agent
