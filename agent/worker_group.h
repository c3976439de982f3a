#pragma once

#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "agent/group_policy.h"
#include "agent/restart_policy.h"
#include "base/clock.h"

namespace rankrun::agent {

// The attempts of one node's workers: when to start, stop, kill and start
// again. Pure: no clock, no I/O, no pids; the table is in
// docs/supervision.md, and each of its rows is a test.

enum class Phase {
  kRunning,   // workers are being started or run
  kStopping,  // the living were told to end and have until the deadline
  kSweeping,  // all workers are over; what they left behind is being ended
  kPausing,   // the next attempt begins at the deadline
  kIdle,      // of several nodes: nothing runs, until the coordinator's word
  kSucceeded,
  kFailed,
  kStopped,   // ended because somebody asked
  kTimedOut,  // ended because the job's time was over
};

struct GroupState {
  Phase phase = Phase::kSweeping;
  int attempt = -1;                         // 0 for the first start
  int alive = 0;                            // workers that are starting or run
  bool failed = false;                      // a worker of this attempt failed
  int stop_signal = 0;                      // somebody asked to stop, with this signal
  bool timed_out = false;                   // the job's time is over
  std::optional<int> stuck = {};            // a worker that cannot go on: no restart would help
  bool kill_now = false;                    // asked twice, or the deadline has passed
  bool hurried = false;                     // asked twice, or by a signal that is not handled
  bool was_ordered = false;                 // this attempt was stopped by the coordinator's word
  std::set<int> saving = {};                // local ranks that save now
  std::set<int> awaited = {};               // those of this attempt that were given the time
  std::optional<TimePoint> killed_at = {};  // all that live, in this phase
  bool stuck_told = false;                  // of this attempt
  TimePoint attempt_began{};
  TimePoint failed_at{};   // the first failure of this attempt
  TimePoint stop_began{};  // meaningful in kStopping
  TimePoint deadline{};    // meaningful in kStopping, kSweeping and kPausing
  RestartHistory history = {};
  Duration pause{};                 // before the attempt that follows
  std::string restart_reason = {};  // of the last decision: "at once", or why not

  bool over() const { return phase >= Phase::kSucceeded; }
  bool restarts() const { return phase == Phase::kPausing || phase == Phase::kRunning; }
  // All workers of this attempt have ended well, by themselves.
  bool has_succeeded() const {
    return !failed && !was_ordered && !timed_out && stop_signal == 0 && attempt >= 0;
  }
};

// Begins the first attempt. Once.
struct Begin {};
// A worker's process exists now.
struct WorkerStarted {
  int local_rank;
};
// A worker has ended or could not be started.
struct WorkerEnded {
  int local_rank;
  bool failed;
};
// A worker has said that it saves, or that it has saved.
struct WorkerSaves {
  int local_rank;
  bool saving;
};
// A worker can neither go on nor die (it hangs in the kernel).
struct WorkerStuck {
  int local_rank;
};
// Somebody (a user, a scheduler) wants the job to end.
struct StopRequested {
  int signal_number;
  bool at_once = false;  // by a signal that is not to be handled gently
};
// The job has run for as long as it may.
struct TimeLimitReached {};
// The coordinator's word.
struct StartOrdered {
  int attempt;
};
struct StopOrdered {
  bool at_once;  // without grace
};
struct EndOrdered {
  bool has_succeeded;
};
// No process of the attempt is left: the answer to kSweep.
struct NothingLeft {};
struct DeadlinePassed {};

using Event = std::variant<Begin, WorkerStarted, WorkerEnded, WorkerSaves, WorkerStuck,
                           StopRequested, TimeLimitReached, StartOrdered, StopOrdered, EndOrdered,
                           NothingLeft, DeadlinePassed>;

struct StartAttempt {
  bool operator==(const StartAttempt&) const = default;
};
// To the process group of one worker, or of all that live; but not of those that save, if
// `but_saving`.
struct SignalWorkers {
  int signal_number;
  std::optional<int> local_rank;
  bool but_saving = false;
  bool operator==(const SignalWorkers&) const = default;
};
// Say that the end of this worker is awaited for longer, since it saves.
struct AwaitSaving {
  int local_rank;
  bool operator==(const AwaitSaving&) const = default;
};
// Tell NothingLeft as soon as no descendant is left; signal those that are.
struct Sweep {
  int signal_number;
  bool operator==(const Sweep&) const = default;
};
struct ArmDeadline {
  bool operator==(const ArmDeadline&) const = default;
};
// Say that a process does not die of SIGKILL.
struct TellStuck {
  bool operator==(const TellStuck&) const = default;
};
using Action =
    std::variant<StartAttempt, SignalWorkers, AwaitSaving, Sweep, ArmDeadline, TellStuck>;

struct Transition {
  GroupState next;
  std::vector<Action> actions;  // to be carried out in this order
};

// Whether `event` is decided on differently when a worker saves.
bool SavingMatters(const GroupPolicy& policy, const GroupState& state, const Event& event);

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now);

}  // namespace rankrun::agent
