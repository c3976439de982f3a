#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace rankrun::agent {

// The attempts of one node's workers: when to start, stop, kill and start
// again. Pure: no clock, no I/O, no pids; the table is in
// docs/architecture.md, and each of its rows is a test.

enum class Phase {
  kRunning,   // workers are being started or run
  kStopping,  // the living were told to end and have until the deadline
  kSweeping,  // all workers are over; what they left behind is being ended
  kSucceeded,
  kFailed,
  kStopped,  // ended because somebody asked
};

struct GroupPolicy {
  int workers = 1;
  int max_restarts = 0;
  std::chrono::milliseconds shutdown_timeout{25'000};  // from the signal to SIGKILL
  std::chrono::milliseconds sweep_timeout{1'000};      // the same for what is left behind
};

struct GroupState {
  Phase phase = Phase::kSweeping;
  int attempt = -1;       // 0 for the first start
  int alive = 0;          // workers that are starting or run
  bool failed = false;    // a worker of this attempt failed
  int stop_signal = 0;    // somebody asked to stop, with this signal
  bool kill_now = false;  // asked twice, or the deadline has passed
  TimePoint deadline{};   // meaningful in kStopping and kSweeping

  bool over() const {
    return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kStopped;
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
  bool failed;
};
// Somebody (a user, a scheduler) wants the job to end.
struct StopRequested {
  int signal_number;
};
// No process of the attempt is left: the answer to kSweep.
struct NothingLeft {};
struct DeadlinePassed {};

using Event =
    std::variant<Begin, WorkerStarted, WorkerEnded, StopRequested, NothingLeft, DeadlinePassed>;

struct StartAttempt {
  bool operator==(const StartAttempt&) const = default;
};
// To the process group of one worker, or of all that live.
struct SignalWorkers {
  int signal_number;
  std::optional<int> local_rank;
  bool operator==(const SignalWorkers&) const = default;
};
// Tell NothingLeft as soon as no descendant is left; signal those that are.
struct Sweep {
  int signal_number;
  bool operator==(const Sweep&) const = default;
};
struct ArmDeadline {
  bool operator==(const ArmDeadline&) const = default;
};
using Action = std::variant<StartAttempt, SignalWorkers, Sweep, ArmDeadline>;

struct Transition {
  GroupState next;
  std::vector<Action> actions;  // to be carried out in this order
};

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now);

}  // namespace rankrun::agent
