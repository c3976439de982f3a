#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/timing.h"

// Timing of collectives, the same for rankrun and its peers. After a warm-up it
// runs batches of calls without a pause. A batch takes as long as on its
// slowest rank. The result is the median of the batches.
namespace rankrun::bench {

using Seconds = std::chrono::duration<double>;

struct BatchPlan {
  int warmup_calls = 5;
  int64_t calls = 0;  // calls per batch; 0: as many as fill `batch`
  int batches = 5;
  Seconds batch = Seconds(0.02);
  Seconds limit = Seconds(10);  // no batch begins after this time
};

struct BatchTimes {
  double microseconds = 0;  // per call
  int64_t calls = 0;
  int batches = 0;
};

inline double SecondsOf(int64_t calls, const auto& call) {
  auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

// Returns the number of calls that fill a batch. All ranks get the same number,
// because all decisions here follow from `slowest`.
inline int64_t FillingCalls(const BatchPlan& plan, const auto& call, const auto& slowest) {
  constexpr double kEnoughToTell = 0.1;
  for (int64_t calls = 1;; calls *= 4) {
    double took = slowest(SecondsOf(calls, call));
    if (took < plan.batch.count() * kEnoughToTell) continue;
    double wanted = static_cast<double>(calls) * plan.batch.count() / took;
    return std::max<int64_t>(1, std::llround(wanted));
  }
}

// `slowest(seconds)` returns the largest value of all ranks, after all have
// called it. `check()` runs after each batch, untimed.
inline BatchTimes MeasureBatches(const BatchPlan& plan, const auto& call, const auto& slowest,
                                 const auto& check) {
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < plan.warmup_calls; ++i) call();
  slowest(0);
  int64_t calls = plan.calls > 0 ? plan.calls : FillingCalls(plan, call, slowest);
  std::vector<double> times;
  for (bool more = true; more;) {
    times.push_back(slowest(SecondsOf(calls, call)));
    check();
    double passed = slowest(Seconds(std::chrono::steady_clock::now() - begin).count());
    more = std::ssize(times) < plan.batches && passed < plan.limit.count();
  }
  return {.microseconds = Median(times) / static_cast<double>(calls) * 1e6,
          .calls = calls,
          .batches = static_cast<int>(times.size())};
}

}  // namespace rankrun::bench
