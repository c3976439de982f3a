#include "agent/lifecycle/worker_group.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace rankrun::agent {
namespace {

Transition BeginAttempt(const GroupPolicy& policy, GroupState s, int attempt) {
  s.phase = Phase::kRunning;
  s.attempt = attempt;
  s.was_ordered = s.hurried = false;
  s.alive = policy.workers;
  s.failed = s.nothing_left = false;
  s.cause_by.reset();
  s.kill_now = s.stuck_reported = false;
  s.killed_at.reset();
  s.grace_until.reset();
  s.leftover_saves = false;
  s.saving.clear();
  s.awaited.clear();
  return {s, {StartAttempt{}}};
}

// The time of a stop is also that of the processes below a worker: a shell that was signalled
// ends at once, and its child still saves.
void NoteGrace(const GroupPolicy& policy, GroupState& s) {
  auto timeout = policy.shutdown_timeout;
  if (s.leftover_saves || !s.saving.empty()) timeout = std::max(timeout, policy.save_timeout);
  s.grace_until = s.stop_began + timeout;
}

bool InGrace(const GroupState& s, TimePoint now) { return s.grace_until && now < *s.grace_until; }

Transition BeginSweep(const GroupPolicy& policy, GroupState s, TimePoint now) {
  if (s.phase == Phase::kStopping && !s.hurried) NoteGrace(policy, s);
  s.phase = Phase::kSweeping;
  s.killed_at.reset();
  s.deadline = now + policy.sweep_timeout;
  bool kills = s.kill_now && !InGrace(s, now);
  return {s, {Sweep{kills ? SIGKILL : SIGTERM, InGrace(s, now)}, ArmDeadline{}}};
}

// Announces once per attempt that a worker gets the longer time to save.
void Await(const GroupPolicy& policy, GroupState& s, int local_rank, std::vector<Action>& actions) {
  if (s.hurried || policy.save_timeout <= policy.shutdown_timeout) return;
  if (s.awaited.insert(local_rank).second) actions.push_back(AwaitSaving{local_rank});
}

Transition BeginStop(const GroupPolicy& policy, GroupState s, int signal_number, TimePoint now) {
  s.phase = Phase::kStopping;
  s.stop_began = now;
  s.deadline = now + (s.hurried ? policy.sweep_timeout : policy.shutdown_timeout);
  std::vector<Action> actions{SignalWorkers{s.hurried ? SIGKILL : signal_number, std::nullopt}};
  for (int local_rank : s.saving) Await(policy, s, local_rank, actions);
  actions.push_back(ArmDeadline{});
  return {s, actions};
}

// Signals a worker whose start was in progress when the others were signalled.
Transition On(const GroupPolicy&, const GroupState& s, const WorkerStarted& e, TimePoint) {
  if (s.phase != Phase::kStopping) return {s, {}};
  int gentle = s.stop_signal != 0 ? s.stop_signal : SIGTERM;
  return {s, {SignalWorkers{s.kill_now ? SIGKILL : gentle, e.local_rank}}};
}

// Notes until when the cause of this failure may show itself.
void NoteFailure(const GroupPolicy& policy, GroupState& s, bool may_be_victim, TimePoint now) {
  bool is_first = !std::exchange(s.failed, true);
  bool waits =
      may_be_victim && policy.victim_grace > Duration::zero() && !policy.continue_on_failure;
  if (is_first && waits && s.phase == Phase::kRunning) s.cause_by = now + policy.victim_grace;
  if (!may_be_victim) s.cause_by.reset();
}

Transition On(const GroupPolicy& policy, GroupState s, const WorkerEnded& e, TimePoint now) {
  s.alive -= 1;
  s.leftover_saves |= s.saving.erase(e.local_rank) > 0 && s.phase == Phase::kStopping;
  if (e.failed) NoteFailure(policy, s, e.may_be_victim, now);
  if (s.alive == 0) return BeginSweep(policy, s, now);
  bool ends_all = e.failed && !policy.continue_on_failure;
  if (!ends_all || s.phase != Phase::kRunning) return {s, {}};
  if (!s.cause_by) return BeginStop(policy, s, SIGTERM, now);
  s.deadline = *s.cause_by;
  return {s, {ArmDeadline{}}};
}

// Nobody waits any more for the cause of a failure.
Transition BecomeIdle(GroupState s) {
  s.phase = Phase::kIdle;
  s.nothing_left = false;
  return {std::move(s), {}};
}

// A process below a worker that has ended, by a stop, may save.
Transition OnLeftoverSaves(const GroupPolicy& policy, GroupState s, const WorkerSaves& e) {
  if (!s.grace_until || !e.saving) return {s, {}};
  s.saving.insert(e.local_rank);
  NoteGrace(policy, s);
  std::vector<Action> actions;
  Await(policy, s, e.local_rank, actions);
  return {s, actions};
}

Transition On(const GroupPolicy& policy, GroupState s, const WorkerSaves& e, TimePoint now) {
  if (s.phase == Phase::kSweeping) return OnLeftoverSaves(policy, std::move(s), e);
  bool lives = s.phase == Phase::kRunning || s.phase == Phase::kStopping;
  if (!lives) return {s, {}};
  std::vector<Action> actions;
  if (!e.saving) {
    bool was_spared = s.saving.erase(e.local_rank) > 0 && s.kill_now && !s.hurried;
    if (!was_spared) return {s, {}};
    s.deadline = now + policy.sweep_timeout;  // time to exit after saving
    return {s, {ArmDeadline{}}};
  }
  if (s.kill_now) return {s, {}};  // too late to save
  s.saving.insert(e.local_rank);
  if (s.phase == Phase::kStopping) Await(policy, s, e.local_rank, actions);
  return {s, actions};
}

Transition On(const GroupPolicy& policy, GroupState s, const WorkerStuck& e, TimePoint now) {
  bool lives = s.phase == Phase::kRunning || s.phase == Phase::kStopping;
  if (!lives) return {s, {}};
  s.failed = true;
  if (!s.stuck) s.stuck = e.local_rank;
  if (s.phase == Phase::kRunning) return BeginStop(policy, s, SIGTERM, now);
  return {s, {}};
}

// Also with continue_on_failure, because the workers would never end.
Transition On(const GroupPolicy& policy, GroupState s, const WorkersHang&, TimePoint now) {
  if (s.phase != Phase::kRunning) return {s, {}};
  s.failed = true;
  return BeginStop(policy, s, SIGTERM, now);
}

Transition KillLeftovers(GroupState s) {
  s.grace_until.reset();
  return {std::move(s), {Sweep{SIGKILL}}};
}

Transition On(const GroupPolicy& policy, GroupState s, const StopRequested& e, TimePoint now) {
  if (s.over()) return {s, {}};
  bool hurry = s.stop_signal != 0 || e.at_once;
  if (s.stop_signal == 0) s.stop_signal = e.signal_number;
  s.kill_now |= hurry;
  s.hurried |= hurry;
  switch (s.phase) {
    case Phase::kRunning:
      return BeginStop(policy, s, e.signal_number, now);
    case Phase::kStopping:
      // The workers may be stopping already because of a failure.
      if (!hurry) return {s, {}};
      return {s, {SignalWorkers{SIGKILL, std::nullopt}}};
    case Phase::kSweeping:
      if (s.nothing_left) return BecomeIdle(std::move(s));
      if (!hurry) return {s, {}};
      return KillLeftovers(std::move(s));
    case Phase::kIdle:
    case Phase::kSucceeded:
    case Phase::kFailed:
    case Phase::kStopped:
    case Phase::kTimedOut:
      return {s, {}};
  }
  __builtin_unreachable();
}

Transition On(const GroupPolicy& policy, GroupState s, const RestartRequested&, TimePoint now) {
  if (s.phase != Phase::kRunning) return {s, {}};
  s.was_ordered = true;
  return BeginStop(policy, std::move(s), SIGTERM, now);
}

Transition On(const GroupPolicy& policy, GroupState s, const TimeLimitReached&, TimePoint now) {
  if (s.over()) return {s, {}};
  if (s.phase == Phase::kSweeping && !s.failed) return {s, {}};  // all workers succeeded in time
  s.timed_out = true;
  if (s.nothing_left) return BecomeIdle(std::move(s));
  if (s.phase == Phase::kRunning) return BeginStop(policy, s, SIGTERM, now);
  return {s, {}};
}

Transition On(const GroupPolicy& policy, GroupState s, const StartOrdered& e, TimePoint) {
  if (s.phase != Phase::kIdle || s.stop_signal != 0 || s.timed_out) return {s, {}};
  return BeginAttempt(policy, std::move(s), e.attempt);
}

Transition On(const GroupPolicy& policy, GroupState s, const StopOrdered& e, TimePoint now) {
  if (s.nothing_left) return BecomeIdle(std::move(s));
  bool runs = s.phase == Phase::kRunning || s.phase == Phase::kStopping;
  s.was_ordered |= runs;
  s.kill_now |= runs && e.at_once;
  s.hurried |= runs && e.at_once;
  if (s.phase == Phase::kRunning) return BeginStop(policy, s, SIGTERM, now);
  if (s.phase == Phase::kStopping && e.at_once) {
    return {s, {SignalWorkers{SIGKILL, std::nullopt}}};
  }
  if (s.phase == Phase::kSweeping && InGrace(s, now) && e.at_once)
    return KillLeftovers(std::move(s));
  return {s, {}};
}

// The coordinator orders the end only when nothing runs here any more.
Transition On(const GroupPolicy&, GroupState s, const EndOrdered& e, TimePoint) {
  if (s.phase != Phase::kIdle) return {s, {}};
  s.phase = e.has_succeeded ? Phase::kSucceeded : Phase::kFailed;
  if (s.timed_out) s.phase = Phase::kTimedOut;
  if (s.stop_signal != 0) s.phase = Phase::kStopped;
  return {s, {}};
}

Transition On(const GroupPolicy& policy, GroupState s, const NothingLeft&, TimePoint now) {
  if (s.phase != Phase::kSweeping || s.nothing_left) return {s, {}};
  bool is_ending = s.stop_signal != 0 || s.timed_out || s.was_ordered;
  bool waits = policy.is_one_of_several && s.cause_by && now < *s.cause_by && !is_ending;
  if (!waits) return BecomeIdle(std::move(s));
  s.nothing_left = true;
  s.deadline = *s.cause_by;
  return {s, {ArmDeadline{}}};
}

// Called whenever all living workers get SIGKILL. Returns true once per
// attempt, when some of them have survived SIGKILL for stuck_timeout.
bool MustReportStuck(const GroupPolicy& policy, GroupState& s, TimePoint now) {
  if (!s.killed_at) s.killed_at = now;
  bool is_late = now - *s.killed_at >= policy.stuck_timeout;
  if (policy.stuck_timeout == Duration::zero() || s.stuck_reported || !is_late) return false;
  return s.stuck_reported = true;
}

// Repeats SIGKILL until all workers have died, and reports those that do not
// die.
Transition KillLate(const GroupPolicy& policy, GroupState s, TimePoint now) {
  s.kill_now = true;
  s.deadline = now + policy.sweep_timeout;
  TimePoint saved_by = s.stop_began + policy.save_timeout;
  bool spares = !s.hurried && !s.saving.empty() && now < saved_by;
  if (spares) s.deadline = std::min(s.deadline, saved_by);
  bool is_stuck = !spares && MustReportStuck(policy, s, now);
  std::vector<Action> actions{SignalWorkers{SIGKILL, std::nullopt, spares}, ArmDeadline{}};
  // The job may go on elsewhere while this worker is stuck, so kill its
  // leftover processes now.
  if (is_stuck) actions.insert(actions.end(), {Sweep{SIGKILL}, ReportStuck{}});
  return {s, actions};
}

Transition On(const GroupPolicy& policy, GroupState s, const DeadlinePassed&, TimePoint now) {
  bool waits_for_cause = s.phase == Phase::kRunning && s.cause_by;
  bool waiting = waits_for_cause || s.phase == Phase::kStopping || s.phase == Phase::kSweeping;
  if (!waiting) return {s, {}};                       // a deadline of an earlier phase
  if (now < s.deadline) return {s, {ArmDeadline{}}};  // woken early
  if (waits_for_cause) return BeginStop(policy, s, SIGTERM, now);
  if (s.nothing_left) return BecomeIdle(std::move(s));
  if (s.phase == Phase::kStopping) return KillLate(policy, s, now);
  // Repeat the sweep because the children of a killed process appear only after
  // its death.
  s.deadline = now + policy.sweep_timeout;
  bool in_grace = InGrace(s, now);
  if (in_grace) s.deadline = std::min(s.deadline, *s.grace_until);
  std::vector<Action> actions{Sweep{SIGKILL, in_grace}, ArmDeadline{}};
  if (!in_grace && MustReportStuck(policy, s, now)) actions.push_back(ReportStuck{});
  return {s, actions};
}

}  // namespace

bool SavingMatters(const GroupPolicy& policy, const GroupState& state, const Event& event) {
  bool lives = state.phase == Phase::kRunning || state.phase == Phase::kStopping;
  if (!lives || policy.save_timeout <= policy.shutdown_timeout) return false;
  return std::holds_alternative<DeadlinePassed>(event) ||
         std::holds_alternative<StopRequested>(event) ||
         std::holds_alternative<RestartRequested>(event) ||
         std::holds_alternative<TimeLimitReached>(event) ||
         std::holds_alternative<WorkersHang>(event) ||
         (std::holds_alternative<WorkerEnded>(event) && state.phase == Phase::kRunning);
}

Transition Step(const GroupPolicy& policy, GroupState state, const Event& event, TimePoint now) {
  return std::visit([&](const auto& e) { return On(policy, state, e, now); }, event);
}

}  // namespace rankrun::agent
