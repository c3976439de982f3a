#include <algorithm>
#include <utility>

#include "agent/coordination/coordinator.h"
#include "agent/coordination/mutation.h"
#include "agent/job/exit_codes.h"
#include "base/format.h"

// The second part of Coordinator: rounds and time-outs.

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kAwaitedEndLasts{5};

}  // namespace

// --- Rounds ---

void Coordinator::Enter(JobPhase phase, std::optional<Duration> at_most) {
  phase_ = phase;
  phase_start_ = now_;
  deadline_.reset();
  if (at_most) deadline_ = now_ + *at_most;
}

void Coordinator::StartGathering(bool waits_for_newcomers) {
  Enter(JobPhase::kGathering, policy_.join_timeout);
  gathering_.Begin(waits_for_newcomers, now_);
  for (const auto& [id, participant] : round_.participants()) {
    roster_.at(id).previous_rank = participant.node_rank;
  }
  round_.RemoveAll();
  for (auto& [id, node] : roster_.nodes()) {
    if (node.work == NodeState::kPrepared || node.work == NodeState::kDone)
      node.work = NodeState::kNone;
    if (node.work == NodeState::kNone) node.answer_deadline.reset();
  }
  TryForm();
}

void Coordinator::TryForm() {
  if (phase_ != JobPhase::kGathering) return;
  if (auto candidates = gathering_.TryForm(roster_, now_)) Form(std::move(*candidates));
}

void Coordinator::Form(std::vector<Candidate> candidates) {
  auto assignments = AssignNodeRanks(std::move(candidates), policy_.max_nodes);
  auto store_addresses = roster_.at(assignments.front().node).hello.addresses;
  round_ =
      RoundInProgress(HighestKnownRound() + 1, std::move(assignments), std::move(store_addresses));
  is_granted_ = false;
  Enter(JobPhase::kPreparing, std::nullopt);
  Persist();
  Announce(CurrentAttempt(), round_.AsEvent());
  round_.AwaitAll();
  for (auto& [id, node] : roster_.nodes()) {
    if (node.replaced_after > 0 && !IsIn(node)) node.previous_rank.reset();
  }
  for (const NodeAssignment& assignment : round_.assignments()) {
    Node& node = roster_.at(assignment.node);
    node.answer_deadline = now_ + policy_.answer_timeout;
    Prepare message = round_.PrepareFor(assignment.node);
    message.attempt = attempts_;
    message.max_restarts = policy_.restart.max_restarts;
    SendTo(node, message);
  }
}

void Coordinator::Grant() {
  is_granted_ = true;
  attempts_ += 1;
  has_lost_ = false;
  store_loss_.reset();
  leave_reason_.clear();
  Enter(JobPhase::kRunning, std::nullopt);
  newcomers_.Reset();
  finish_deadline_.reset();
  awaited_end_ = {};
  Persist();
  for (const NodeAssignment& assignment : round_.assignments()) {
    Node& node = roster_.at(assignment.node);
    node.work = NodeState::kRunning;
    SendTo(node, round_.StartRoundFor(assignment.node));
  }
  round_.AwaitAll();
  for (const auto& [id, node] : roster_.nodes()) NotifyIfSpare(node);
  RegroupForNewcomers();
}

// Stops a running round for a larger one, except once a node is done.
void Coordinator::RegroupForNewcomers() {
  if (finish_deadline_) return newcomers_.Reset();
  auto newcomer = newcomers_.Look(roster_, round_, now_);
  if (!newcomer) return;
  BeginStop(
      {.text = "node " + *newcomer + " joins", .is_primary = false, .consumes_restart = false},
      *newcomer);
}

void Coordinator::RecordDone(Node& node) {
  if (!finish_deadline_) finish_deadline_ = now_ + policy_.finish_timeout;
  RecordAnswer(node, NodeState::kDone);
}

void Coordinator::BeginStop(const Cause& cause, const std::string& node_name,
                            std::optional<uint64_t> failed_node) {
  stop_.emplace(cause, RoundVerdict::Round{.was_started = is_granted_,
                                           .lasted = now_ - phase_start_,
                                           .stopped = now_,
                                           .failed_node = failed_node});
  Announce(CurrentAttempt(),
           events::RoundStopping{.round = round_.number(),
                                 .node = node_name,
                                 .rank = cause.rank >= 0 ? std::optional(cause.rank) : std::nullopt,
                                 .why = cause.text});
  Enter(JobPhase::kStopping, std::nullopt);
  round_.AwaitAll();
  for (const auto& [id, participant] : round_.participants()) {
    Node& node = roster_.at(id);
    node.answer_deadline = StopDeadline(node);
    if (node.work == NodeState::kNone) {
      node.answer_deadline.reset();
      round_.RecordAnswer(id);
    } else if (node.work != NodeState::kStopping) {
      OrderStop(node);
    }
  }
  Persist();  // no message has to wait for it
  if (round_.awaited() == 0) DecideNext();
}

void Coordinator::OrderStop(Node& node) {
  node.work = NodeState::kStopping;
  const Cause& cause = stop_->cause();
  bool is_failure = cause.is_primary || cause.consumes_restart;
  SendTo(node, Stop{round_.number(), cause.text, is_failure});
}

void Coordinator::RecordAnswer(Node& node, NodeState work) {
  node.work = work;
  node.answer_deadline.reset();
  if (round_.RecordAnswer(node.hello.node)) OnAnswer();
}

// Ends the phase if the last answer has arrived.
void Coordinator::OnAnswer() {
  bool is_early = IsMutated(Mutation::kGoBeforeAllPrepared) && phase_ == JobPhase::kPreparing;
  if (round_.awaited() > (is_early ? 1 : 0)) return;
  if (phase_ == JobPhase::kPreparing) return Grant();
  if (phase_ == JobPhase::kRunning) return BeginFinish();
  if (phase_ == JobPhase::kStopping) return DecideNext();
  if (phase_ == JobPhase::kFinishing) return End({0, ""});
}

// Decides how to continue once nothing of the round is left.
void Coordinator::DecideNext() {
  RoundVerdict stop = *std::exchange(stop_, std::nullopt);
  PreferStoreLoss(stop);
  const bool is_node_known = RecordNodeOfCause(stop);
  const Cause& cause = stop.cause();
  int attempt = CurrentAttempt();
  is_granted_ = false;
  for (uint64_t id : roster_.RemoveDeparted()) round_.Remove(id);
  outcome_ = stop.EndOfJob();
  if (cause.is_fatal) return End({cause.exit_code, cause.text});
  if (EndsDrained()) return;
  RoundVerdict::Next next = stop.Decide(policy_.restart, history_);
  outcome_ = next.outcome;
  if (next.history) history_ = *next.history;
  if (!outcome_.restarts) return End({cause.exit_code, cause.text});
  if (is_node_known) ReplaceIfFailing();
  Persist();
  Announce(attempt,
           events::RestartDecided{.round = round_.number(),
                                  .number = history_.restarts,
                                  .is_free = outcome_.is_free,
                                  .pause = std::chrono::ceil<std::chrono::milliseconds>(next.pause),
                                  .why = outcome_.cause});
  if (next.pause == Duration::zero()) return StartGathering(false);
  Enter(JobPhase::kPausing, next.pause);
}

// Returns whether a node is known to have failed.
bool Coordinator::RecordNodeOfCause(RoundVerdict& stop) {
  const Cause& cause = stop.cause();
  std::string name;
  if (cause.node && cause.is_primary) name = round_.NameOf(*cause.node);
  stop.NoteNode(CurrentAttempt(), name, causes_.rows);
  if (name.empty()) return false;
  AddFailure(causes_.rows, *cause.node, name, CurrentAttempt());
  return true;
}

// The first failure that was known may be a victim's.
void Coordinator::On(const CauseFound& event) {
  if (event.attempt != outcome_.attempt || event.node == outcome_.cause_node) return;
  outcome_.cause_node = event.node;
  causes_.rows = outcome_.earlier_failures;
  AddFailure(causes_.rows, roster_.IdOf(event.node), event.node, event.attempt);
  if (phase_ == JobPhase::kPausing) ReplaceIfFailing();
  Persist();
}

// Gives the place of the node that has failed again to a spare. A spare that was replaced itself
// is no better.
void Coordinator::ReplaceIfFailing() {
  const FailureRow& row = causes_.rows.back();
  const bool is_due = policy_.replace_after > 0 && row.failures >= policy_.replace_after;
  if (!is_due || !round_.Contains(row.node) || !roster_.HasMoreThanMax()) return;
  if (policy_.keeps_own_node && row.node == policy_.own_node) {
    outcome_.reason += "; node " + row.name + " keeps its place: it has the port of the store";
    return;
  }
  Node& failing = roster_.at(row.node);
  for (auto& [id, spare] : roster_.nodes()) {
    if (spare.replaced_after > 0 || !IsIdle(spare, roster_, round_)) continue;
    spare.previous_rank = round_.participants().at(row.node).node_rank;
    failing.replaced_after = row.failures;
    causes_.RecordReplaced(row.node, row.failures);
    outcome_.reason += "; node " + row.name + " changes places with the spare " + spare.hello.name;
    return Announce(outcome_.attempt,
                    events::NodeReplaced{row.name, spare.hello.name, row.failures});
  }
}

// --- The end ---

void Coordinator::BeginFinish() {
  Enter(JobPhase::kFinishing, policy_.node_timeout);
  has_finished_ = true;
  Persist();
  if (IsMutated(Mutation::kSuccessInOnePhase)) return End({0, ""});
  round_.AwaitAll();
  for (const auto& [id, participant] : round_.participants()) {
    SendTo(roster_.at(id), Finish{round_.number()});
  }
}

void Coordinator::End(Verdict verdict) {
  Enter(JobPhase::kOver, policy_.node_timeout);
  if (!verdict_) Announce(std::nullopt, events::VerdictGiven{verdict.exit_code, verdict.text});
  verdict_ = std::move(verdict);
  Persist();
  for (auto& [id, node] : roster_.nodes()) SendTo(node, *verdict_);
}

// --- Time-outs ---

void Coordinator::OnTick() {
  if (now_ >= next_silence_check_) {
    LoseSilentNodes();
    GiveUpLateNodes();
    next_silence_check_ = now_ + policy_.node_timeout / kSilenceChecksPerTimeout;
  }
  bool is_late = deadline_ && now_ >= *deadline_;
  switch (phase_) {
    case JobPhase::kGathering:
      if (is_late) return GiveUpGathering();
      if (gathering_.IsDue(now_)) TryForm();
      if (phase_ == JobPhase::kGathering && gathering_.TakeRollCall(now_)) SendRollCall();
      return;
    case JobPhase::kRunning:
      if (now_ >= newcomers_.deadline().value_or(TimePoint::max())) RegroupForNewcomers();
      if (phase_ == JobPhase::kRunning && finish_deadline_ && now_ >= *finish_deadline_)
        GiveUpFinishing();
      return;
    case JobPhase::kPausing:
      if (is_late) StartGathering(false);
      return;
    case JobPhase::kFinishing:
      if (is_late) End({0, ""});
      return;
    case JobPhase::kOver:
      if ((is_late || roster_.nodes().empty()) && !std::exchange(has_retired_, true)) {
        actions_.emplace_back(Retire{});
        deadline_.reset();
      }
      return;
    case JobPhase::kPreparing:
    case JobPhase::kStopping:
      return;
  }
}

void Coordinator::GiveUpGathering() {
  bool had_begun = attempts_ > 0;
  End({had_begun ? kExitTooFewNodes : kExitNoRendezvous,
       "gave up waiting for nodes: " + roster_.RollCall(now_ - phase_start_)});
}

void Coordinator::On(const OthersRefused& event) {
  bool is_alone = roster_.nodes().size() == 1 && roster_.Contains(policy_.own_node);
  bool is_new = phase_ == JobPhase::kGathering && attempts_ == 0;
  if (is_new && is_alone) End({kExitNoRendezvous, event.why});
}

// Samples come while ranks are seen to wait.
void Coordinator::GiveUpFinishing() {
  const bool is_awaited = !awaited_end_.text.empty() && now_ - awaited_end_.seen < kAwaitedEndLasts;
  BeginStop({.text = "not finished " + FormatSeconds(policy_.finish_timeout) +
                     " after the first node (--finish-timeout): " +
                     (is_awaited ? awaited_end_.text : round_.UnfinishedText()),
             .exit_code = kExitHang,
             .is_fatal = true},
            "");
}

void Coordinator::SendRollCall() {
  std::string text = roster_.RollCall(now_ - phase_start_);
  for (const auto& [id, node] : roster_.nodes()) SendTo(node, Waiting{text});
}

}  // namespace rankrun::agent
