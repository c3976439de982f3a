#pragma once

#include <optional>
#include <set>
#include <vector>

#include "agent/lifecycle/group_policy.h"
#include "agent/lifecycle/worker_group_events.h"
#include "base/clock.h"

namespace rankrun::agent {

// State machine of the workers of one node: starts them as the coordinator orders, and
// decides when to stop and kill them. Pure: no clock, no I/O, no pids. docs/supervision.md has
// the transition table; each of its rows is a test.

enum class Phase {
  kRunning,   // workers are starting or running
  kStopping,  // workers were signalled and have until the deadline
  kSweeping,  // all workers have ended; leftover processes are being ended
  kIdle,      // nothing runs until the coordinator orders it
  kSucceeded,
  kFailed,
  kStopped,   // ended on request
  kTimedOut,  // ended by the time limit
};

struct GroupState {
  Phase phase = Phase::kIdle;
  int attempt = -1;     // 0 for the first start
  int alive = 0;        // workers that are starting or running
  bool failed = false;  // a worker of this attempt failed
  // Until then the failure of another worker may be the cause of all others.
  std::optional<TimePoint> cause_by = {};
  bool nothing_left = false;      // in kSweeping, until cause_by
  int stop_signal = 0;            // of the stop request; 0: none
  bool timed_out = false;         // the time limit has passed
  std::optional<int> stuck = {};  // worker that hangs in the kernel: a restart would not help
  bool kill_now = false;          // second stop request, or the deadline has passed
  bool hurried = false;           // second stop request, or an unhandled signal
  bool was_ordered = false;       // the coordinator or the user stopped this attempt
  std::set<int> saving = {};      // local ranks that are saving
  std::set<int> awaited = {};     // local ranks that got the longer save time in this attempt
  std::optional<TimePoint> killed_at = {};  // first SIGKILL to all workers in this phase
  bool stuck_reported = false;              // in this attempt
  TimePoint stop_began{};                   // meaningful in kStopping
  // In kSweeping, the end of the time for leftovers of workers that were signalled.
  std::optional<TimePoint> grace_until = {};
  bool leftover_saves = false;  // a worker that was saving has ended after a signal
  TimePoint deadline{};         // meaningful in kStopping, kSweeping and until cause_by

  bool over() const { return phase >= Phase::kSucceeded; }
  // All workers of this attempt ended successfully and on their own.
  bool has_succeeded() const {
    return !failed && !was_ordered && !timed_out && stop_signal == 0 && attempt >= 0;
  }
};

struct Transition {
  GroupState next;
  std::vector<Action> actions;  // in the order of execution
};

// Returns whether the decision on `event` depends on which workers are saving.
bool SavingMatters(const GroupPolicy& policy, const GroupState& state, const Event& event);

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now);

}  // namespace rankrun::agent
