#pragma once

#include <optional>
#include <variant>

// Events of worker_group's Step, and its actions.
namespace rankrun::agent {

// The process of a worker exists.
struct WorkerStarted {
  int local_rank;
};
// A worker has ended or could not be started.
struct WorkerEnded {
  int local_rank;
  bool failed;
  bool may_be_victim = false;  // it lost another worker, or waited for it in vain
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
// The user asks for another attempt, which the coordinator will order.
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

using Event = std::variant<WorkerStarted, WorkerEnded, WorkerSaves, WorkerStuck, WorkersHang,
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
// Signals all remaining descendants. NothingLeft follows when none is left. With `but_stopping`,
// leftovers of workers that were signalled get no second signal and no SIGKILL.
struct Sweep {
  int signal_number;
  bool but_stopping = false;
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

}  // namespace rankrun::agent
