#include "agent/worker_group.h"

#include <signal.h>

namespace rankrun::agent {
namespace {

Transition NextAttempt(const GroupPolicy& policy, GroupState s) {
  s.phase = Phase::kRunning;
  s.attempt += 1;
  s.alive = policy.workers;
  s.failed = false;
  s.kill_now = false;
  return {s, {StartAttempt{}}};
}

Transition BeginSweep(const GroupPolicy& policy, GroupState s, TimePoint now) {
  s.phase = Phase::kSweeping;
  s.deadline = now + policy.sweep_timeout;
  return {s, {Sweep{s.kill_now ? SIGKILL : SIGTERM}, ArmDeadline{}}};
}

Transition BeginStop(const GroupPolicy& policy, GroupState s, int signal_number, TimePoint now) {
  s.phase = Phase::kStopping;
  s.deadline = now + policy.shutdown_timeout;
  return {s, {SignalWorkers{signal_number, std::nullopt}, ArmDeadline{}}};
}

Transition On(const GroupPolicy& policy, GroupState s, const Begin&, TimePoint) {
  return NextAttempt(policy, s);
}

// A start that was under way when its siblings were told to end.
Transition On(const GroupPolicy&, GroupState s, const WorkerStarted& e, TimePoint) {
  if (s.phase != Phase::kStopping) return {s, {}};
  int gentle = s.stop_signal != 0 ? s.stop_signal : SIGTERM;
  return {s, {SignalWorkers{s.kill_now ? SIGKILL : gentle, e.local_rank}}};
}

Transition On(const GroupPolicy& policy, GroupState s, const WorkerEnded& e, TimePoint now) {
  s.alive -= 1;
  s.failed |= e.failed;
  if (s.alive == 0) return BeginSweep(policy, s, now);
  if (s.failed && s.phase == Phase::kRunning) return BeginStop(policy, s, SIGTERM, now);
  return {s, {}};
}

Transition On(const GroupPolicy& policy, GroupState s, const StopRequested& e, TimePoint now) {
  if (s.over()) return {s, {}};
  bool again = s.stop_signal != 0;
  s.stop_signal = again ? s.stop_signal : e.signal_number;
  s.kill_now |= again;
  switch (s.phase) {
    case Phase::kRunning:
      return BeginStop(policy, s, e.signal_number, now);
    case Phase::kStopping:
      // The first request may find workers that were told to end by a failure.
      if (!again) return {s, {}};
      return {s, {SignalWorkers{SIGKILL, std::nullopt}}};
    case Phase::kSweeping:
      if (!again) return {s, {}};
      return {s, {Sweep{SIGKILL}}};
    case Phase::kSucceeded:
    case Phase::kFailed:
    case Phase::kStopped:
      return {s, {}};
  }
  __builtin_unreachable();
}

Transition On(const GroupPolicy& policy, GroupState s, const NothingLeft&, TimePoint) {
  if (s.phase != Phase::kSweeping) return {s, {}};
  if (s.stop_signal != 0) {
    s.phase = Phase::kStopped;
  } else if (!s.failed) {
    s.phase = Phase::kSucceeded;
  } else if (s.attempt == policy.max_restarts) {
    s.phase = Phase::kFailed;
  } else {
    return NextAttempt(policy, s);
  }
  return {s, {}};
}

Transition On(const GroupPolicy& policy, GroupState s, const DeadlinePassed&, TimePoint now) {
  bool waiting = s.phase == Phase::kStopping || s.phase == Phase::kSweeping;
  if (!waiting) return {s, {}};                       // a deadline of an earlier phase
  if (now < s.deadline) return {s, {ArmDeadline{}}};  // woken early
  if (s.phase == Phase::kStopping) {
    s.kill_now = true;
    s.deadline = now + policy.sweep_timeout;  // then it is said who has not died
    return {s, {SignalWorkers{SIGKILL, std::nullopt}, ArmDeadline{}}};
  }
  // Again and again: the children of the killed come up only then.
  s.deadline = now + policy.sweep_timeout;
  return {s, {Sweep{SIGKILL}, ArmDeadline{}}};
}

}  // namespace

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now) {
  return std::visit([&](const auto& e) { return On(policy, state, e, now); }, event);
}

}  // namespace rankrun::agent
