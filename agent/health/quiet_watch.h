#pragma once

#include <map>
#include <optional>
#include <vector>

#include "agent/health/worker_sample.h"
#include "base/clock.h"

namespace rankrun::agent {

// A quiet worker uses less than this part of a core: 1/20.
constexpr int kQuietShare = 20;

// Decides when to look into the stacks of workers that show nothing of what they wait for, because
// one of them has used hardly any processor for the time of a notice. Looks rarely: again after
// four times as long, of this quiet and of any. Pure.
class QuietWatch {
 public:
  explicit QuietWatch(Duration notice) : notice_(notice) {}  // 0: never

  // Forgets all earlier samples, because an attempt begins or the workers were stopped.
  void StartOver() { workers_.clear(); }

  // `samples` are those of all workers of this node. Returns for how long one has been quiet if
  // the stacks are to be read now.
  std::optional<Duration> Look(const std::vector<WorkerSample>& samples, TimePoint now);

 private:
  struct Worker {
    Duration cpu_time{};
    TimePoint looked{};
    TimePoint quiet_since{};
  };
  Duration LongestQuiet(const std::vector<WorkerSample>& samples, TimePoint now);

  const Duration notice_;
  std::map<int, Worker> workers_;  // by global rank
  Duration next_{};                // of one that is quiet; 0: none was quiet for the time
  std::optional<TimePoint> read_{};
  Duration gap_{};  // until the next reading
};

}  // namespace rankrun::agent
