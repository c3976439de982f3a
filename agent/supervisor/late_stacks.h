#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "agent/lifecycle/worker_group.h"
#include "agent/report/attempt_record.h"
#include "agent/stacks/stack_taker.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Stacks of workers that are about to be killed: those that are still alive shortly before
// the end of --shutdown-timeout. Delays nothing.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class LateStacks {
 public:
  // `spawner` outlives this object.
  LateStacks(Loop& loop, Spawner& spawner);

  // Call this when a deadline is armed. Takes the stacks of `workers()` shortly before the
  // workers are killed, if `state` is a stop with time left.
  void Arm(const GroupState& state, TimePoint now, std::function<std::vector<pid_t>()> workers);

  // Takes the stacks of workers at once, 16 at most, and keeps them for AddTo. Calls `done`
  // later, within `budget` and 0.3 s.
  void Take(std::vector<pid_t> workers, Duration budget, std::function<void()> done);

  // Stacks that Take has kept, by worker.
  const std::map<pid_t, ProcessStacks>& taken() const { return stacks_; }

  // Call this when no worker is left: ends the programs that take stacks.
  void Cancel();

  // Adds the stacks to the records of their workers: those of Take to all, late ones to workers
  // that SIGKILL has ended. Forgets all.
  void AddTo(AttemptRecord& record);

 private:
  void TakeLate();

  StackTaker taker_;
  std::map<pid_t, ProcessStacks> stacks_;
  std::set<pid_t> late_;  // workers that were asked for by the timer
  std::function<std::vector<pid_t>()> workers_;
  Duration budget_{};
  Timer timer_;
};

// Returns how long before the end of a stop that lasts `timeout` stacks are taken; nothing if
// it is too short for that. Pure.
std::optional<Duration> LeadOfStacks(Duration timeout);

}  // namespace rankrun::agent
