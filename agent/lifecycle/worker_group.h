#pragma once

#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "agent/lifecycle/group_policy.h"
#include "agent/lifecycle/restart_policy.h"
#include "base/clock.h"

namespace rankrun::agent {

// State machine of the workers of one node: decides when to start, stop, kill
// and restart them. Pure: no clock, no I/O, no pids. docs/supervision.md has
// the transition table; each of its rows is a test.

enum class Phase {
  kRunning,   // workers are starting or running
  kStopping,  // workers were signalled and have until the deadline
  kSweeping,  // all workers have ended; leftover processes are being ended
  kPausing,   // the next attempt begins at the deadline
  kIdle,      // several nodes: nothing runs until the coordinator orders it
  kSucceeded,
  kFailed,
  kStopped,   // ended on request
  kTimedOut,  // ended by the time limit
};

struct GroupState {
  Phase phase = Phase::kSweeping;
  int attempt = -1;               // 0 for the first start
  int alive = 0;                  // workers that are starting or running
  bool failed = false;            // a worker of this attempt failed
  int stop_signal = 0;            // of the stop request; 0: none
  bool timed_out = false;         // the time limit has passed
  std::optional<int> stuck = {};  // worker that hangs in the kernel: a restart would not help
  bool kill_now = false;          // second stop request, or the deadline has passed
  bool hurried = false;           // second stop request, or an unhandled signal
  bool was_ordered = false;       // the coordinator stopped this attempt
  bool restart_asked = false;     // by the user: the next attempt is not counted
  std::set<int> saving = {};      // local ranks that are saving
  std::set<int> awaited = {};     // local ranks that got the longer save time in this attempt
  std::optional<TimePoint> killed_at = {};  // first SIGKILL to all workers in this phase
  bool stuck_reported = false;              // in this attempt
  TimePoint attempt_began{};
  TimePoint failed_at{};   // the first failure of this attempt
  TimePoint stop_began{};  // meaningful in kStopping
  TimePoint deadline{};    // meaningful in kStopping, kSweeping and kPausing
  RestartHistory history = {};
  Duration pause{};                 // before the next attempt
  std::string restart_reason = {};  // reason of the last restart decision

  bool over() const { return phase >= Phase::kSucceeded; }
  bool restarts() const { return phase == Phase::kPausing || phase == Phase::kRunning; }
  // All workers of this attempt ended successfully and on their own.
  bool has_succeeded() const {
    return !failed && !was_ordered && !timed_out && stop_signal == 0 && attempt >= 0;
  }
};

// Begins the first attempt. Sent once.
struct Begin {};
// The process of a worker exists.
struct WorkerStarted {
  int local_rank;
};
// A worker has ended or could not be started.
struct WorkerEnded {
  int local_rank;
  bool failed;
};
// A worker has started or finished saving.
struct WorkerSaves {
  int local_rank;
  bool saving;
};
// A worker hangs in the kernel: it can neither continue nor die.
struct WorkerStuck {
  int local_rank;
};
// Workers wait for others that do not come, so the attempt has failed.
struct WorkersHang {};
// A user or a scheduler asks the job to end.
struct StopRequested {
  int signal_number;
  bool at_once = false;  // the signal is not one that ends the job gently
};
// The user asks for another attempt.
struct RestartRequested {};
// The job has reached its time limit.
struct TimeLimitReached {};
// Orders of the coordinator.
struct StartOrdered {
  int attempt;
};
struct StopOrdered {
  bool at_once;  // without a grace period
};
struct EndOrdered {
  bool has_succeeded;
};
// No process of the attempt is left: the answer to Sweep.
struct NothingLeft {};
struct DeadlinePassed {};

using Event = std::variant<Begin, WorkerStarted, WorkerEnded, WorkerSaves, WorkerStuck, WorkersHang,
                           StopRequested, RestartRequested, TimeLimitReached, StartOrdered,
                           StopOrdered, EndOrdered, NothingLeft, DeadlinePassed>;

struct StartAttempt {
  bool operator==(const StartAttempt&) const = default;
};
// Signals the process group of one worker, or of all living workers. With
// `but_saving`, workers that are saving get no signal.
struct SignalWorkers {
  int signal_number;
  std::optional<int> local_rank;
  bool but_saving = false;
  bool operator==(const SignalWorkers&) const = default;
};
// Announces that this worker gets more time to end because it is saving.
struct AwaitSaving {
  int local_rank;
  bool operator==(const AwaitSaving&) const = default;
};
// Signals all remaining descendants. NothingLeft follows when none is left.
struct Sweep {
  int signal_number;
  bool operator==(const Sweep&) const = default;
};
struct ArmDeadline {
  bool operator==(const ArmDeadline&) const = default;
};
// Reports the processes that survive SIGKILL.
struct ReportStuck {
  bool operator==(const ReportStuck&) const = default;
};
using Action =
    std::variant<StartAttempt, SignalWorkers, AwaitSaving, Sweep, ArmDeadline, ReportStuck>;

struct Transition {
  GroupState next;
  std::vector<Action> actions;  // in the order of execution
};

// Returns whether the decision on `event` depends on which workers are saving.
bool SavingMatters(const GroupPolicy& policy, const GroupState& state, const Event& event);

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now);

}  // namespace rankrun::agent
