// Cost of a roll call over 64 workers: what the agent does once a second while nobody waits, and
// while 63 workers wait for one; and what it does ten times in the time of a verdict while all
// stand still. Cost of the coordinator's roll call over 1000 nodes with 8 workers each, of which
// one is late. Cost of finding the rank for which 10,000 wait in a chain of connections, at a
// verdict.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/health/hang_watch.h"
#include "agent/health/peer_waits.h"
#include "agent/health/process_facts.h"
#include "agent/health/process_work.h"
#include "agent/nodes/health_codec.h"
#include "agent/nodes/job_health.h"
#include "base/status/activity.h"
#include "base/status/status_page.h"

namespace rankrun::agent {
namespace {

constexpr int kWorkers = 64;
constexpr int kGroups = 4;  // of each worker
constexpr uint8_t kBarrier = 9;

// The status pages of all workers.
struct Pages {
  std::vector<std::unique_ptr<StatusPage>> pages;
  std::vector<std::unique_ptr<Activity>> activities;
};

Pages MakePages(bool waits) {
  Pages all;
  for (int rank = 0; rank < kWorkers; ++rank) {
    auto page = StatusPage::Create();
    if (!page) return {};
    all.pages.push_back(std::make_unique<StatusPage>(*std::move(page)));
    for (int i = 0; i < kGroups; ++i) {
      std::string name = i == 0 ? "world" : "group " + std::to_string(i);
      all.activities.push_back(std::make_unique<Activity>(all.pages.back().get(), name, kWorkers));
      bool is_late = i == 0 && rank == kWorkers - 1;
      all.activities.back()->Enter({.kind = kBarrier, .number = is_late ? 6U : 7U});
      if (i > 0 || is_late || !waits) all.activities.back()->Complete();
    }
  }
  return all;
}

std::vector<WorkerSample> SamplesOf(const Pages& all) {
  std::vector<WorkerSample> samples;
  for (int rank = 0; rank < kWorkers; ++rank) {
    const StatusPage& page = *all.pages[static_cast<size_t>(rank)];
    WorkerSample& sample = samples.emplace_back();
    sample.global_rank = sample.local_rank = rank;
    sample.pid = getpid();
    sample.is_saving = page.saving();
    sample.cpu_time = CpuTimeOf(getpid());
    sample.groups = ReadGroups(page);
    sample.awaited = ReadAwaited(page).what;
  }
  return samples;
}

// Also shows the part of a core that one look a second takes.
void Look(benchmark::State& state, bool waits, bool reads_facts) {
  Pages pages = MakePages(waits);
  if (pages.pages.empty()) return state.SkipWithError("no page");
  AwaitedFiles files;
  HangWatch watch({.notice = std::chrono::hours(1), .timeout = std::chrono::hours(2)});
  TimePoint now = std::chrono::steady_clock::now();
  watch.BeginAttempt(now);
  for (auto _ : state) {
    now += std::chrono::seconds(1);
    std::vector<WorkerSample> samples = SamplesOf(pages);
    if (reads_facts) {
      for (WorkerSample& sample : samples) sample.process = ReadProcessFacts(sample.pid, files);
    }
    benchmark::DoNotOptimize(watch.NeedsFacts(samples, now));
    benchmark::DoNotOptimize(watch.Look(std::move(samples), now));
  }
  // Seconds for a hundredth of an iteration, as a rate turned round.
  state.counters["percent_of_a_core"] =
      benchmark::Counter(static_cast<double>(state.iterations()) / 100,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void NobodyWaits(benchmark::State& state) { Look(state, false, false); }
void OthersWait(benchmark::State& state) { Look(state, true, false); }
void OthersHaveWaitedForLong(benchmark::State& state) { Look(state, true, true); }

// The work of 64 workers, each with the connections of this process.
void AllStandStill(benchmark::State& state) {
  AwaitedFiles files;
  std::vector<WorkerSample> samples;
  for (int rank = 0; rank < kWorkers; ++rank) {
    samples.push_back(
        {.global_rank = rank, .pid = getpid(), .process = ReadProcessFacts(getpid(), files)});
  }
  for (auto _ : state) AddWork(samples, 0);
}

constexpr int kNodes = 1'000;
constexpr int kOfEach = 8;  // workers
constexpr int kAll = kNodes * kOfEach;

// All but the last worker wait in a barrier.
NodeSamples SamplesOfNode(int node, TimePoint now, Duration since) {
  NodeSamples samples{.world_size = kAll};
  for (int i = 0; i < kOfEach; ++i) {
    const int rank = node * kOfEach + i;
    const bool is_late = rank == kAll - 1;
    WorkerSample& worker = samples.workers.emplace_back();
    worker.node = "node" + std::to_string(node);
    worker.taken = now;
    worker.global_rank = rank;
    worker.local_rank = i;
    worker.pid = 1'000 + i;
    worker.groups.push_back({.name = "world",
                             .size = kAll,
                             .last = {.kind = kBarrier, .number = is_late ? 6U : 7U},
                             .completed = 6,
                             .is_under_way = !is_late,
                             .since_entered = since});
    worker.process = ProcessFacts{.state = 'S'};
  }
  return samples;
}

// The messages of all nodes in one second, with or without their decoding.
void SecondOfCoordinator(benchmark::State& state, bool decodes) {
  JobHealth health({.notice = std::chrono::hours(1), .timeout = std::chrono::hours(2)});
  const TimePoint began = std::chrono::steady_clock::now();
  health.BeginRound(1, began);
  Duration since{};
  for (auto _ : state) {
    state.PauseTiming();
    since += std::chrono::seconds(1);
    std::vector<NodeSamples> all;
    std::vector<std::string> encoded;
    for (int node = 0; node < kNodes; ++node) {
      all.push_back(SamplesOfNode(node, began + since, since));
      encoded.push_back(EncodeHealth(all.back()));
    }
    state.ResumeTiming();
    for (size_t node = 0; node < kNodes; ++node) {
      if (decodes) benchmark::DoNotOptimize(DecodeHealth(encoded[node]));
      const TimePoint arrival = began + since + std::chrono::microseconds(900) * node;
      benchmark::DoNotOptimize(health.OnSamples(node, 1, std::move(all[node]), arrival));
    }
  }
}

void SecondOfThousandNodes(benchmark::State& state) { SecondOfCoordinator(state, false); }
void SecondOfThousandNodesWithDecoding(benchmark::State& state) {
  SecondOfCoordinator(state, true);
}

void ChainOfTenThousand(benchmark::State& state) {
  constexpr int kRanks = 10'000;
  std::map<int, WorkerSample> workers;
  for (int rank = 0; rank < kRanks; ++rank) {
    WorkFacts work{.knows_connections = true};
    const auto first = static_cast<uint64_t>(rank) + 1;
    for (uint64_t i = 0; i < kMaxConnections; ++i) work.connections.push_back({.id = first + i});
    if (rank + 1 < kRanks) work.awaited_connection = first + kMaxConnections - 1;
    workers[rank] = {.global_rank = rank, .pid = 1, .work = std::move(work)};
  }
  for (auto _ : state) benchmark::DoNotOptimize(AwaitedByAll(workers));
}

BENCHMARK(ChainOfTenThousand)->Unit(benchmark::kMillisecond);
BENCHMARK(SecondOfThousandNodes)->Unit(benchmark::kMillisecond);
BENCHMARK(SecondOfThousandNodesWithDecoding)->Unit(benchmark::kMillisecond);
BENCHMARK(NobodyWaits);
BENCHMARK(OthersWait);
BENCHMARK(OthersHaveWaitedForLong);
BENCHMARK(AllStandStill)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rankrun::agent
