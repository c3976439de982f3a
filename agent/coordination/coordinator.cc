#include "agent/coordination/coordinator.h"

#include <algorithm>
#include <utility>

#include "agent/coordination/hello.h"
#include "agent/coordination/mutation.h"
#include "agent/job/exit_codes.h"

namespace rankrun::agent {
Coordinator::Coordinator(const CoordinatorPolicy& policy, std::optional<CoordinatorRecord> earlier,
                         TimePoint now)
    : policy_(policy),
      roster_(policy.min_nodes, policy.max_nodes),
      gathering_(policy),
      newcomers_(policy.max_nodes, policy.last_call),
      now_(now),
      phase_start_(now),
      next_silence_check_(now) {
  if (earlier) {
    Resume(std::move(*earlier));
  } else {
    StartGathering(true);
  }
}

// Continues where the predecessor stopped.
void Coordinator::Resume(CoordinatorRecord record) {
  attempts_ = record.attempts;
  is_granted_ = record.is_granted;
  has_finished_ = record.has_finished;
  has_lost_ = record.has_lost;
  outcome_ = std::move(record.outcome);
  history_ = record.history;
  causes_ = std::move(record.causes);
  verdict_ = std::move(record.verdict);
  if (has_lost_) gathering_.WaitUntil(now_ + policy_.node_timeout + policy_.kill_bound);
  for (const NodeAssignment& assignment : record.assignments) {
    Node& node = roster_.Expect({.node = assignment.node,
                                 .incarnation = assignment.incarnation,
                                 .name = assignment.name,
                                 .slots = assignment.slots},
                                now_);
    if (is_granted_) node.work = has_finished_ ? NodeState::kDone : NodeState::kRunning;
  }
  round_ = RoundInProgress(record.round, std::move(record.assignments), {});
  if (verdict_) {
    // Its member needs the verdict, too.
    if (!roster_.Contains(policy_.own_node)) {
      roster_.Expect({.node = policy_.own_node, .name = {}}, now_);
    }
    return End(*verdict_);
  }
  if (has_finished_) return BeginFinish();
  if (record.cause) return BeginStop(*record.cause, "");
  if (!is_granted_) return StartGathering(attempts_ == 0);
  BeginStop({.text = "the agent of the coordinator's node died",
             .exit_code = kExitInternalError,
             .node = policy_.own_node},
            "");
}

std::vector<CoordinatorAction> Coordinator::Step(const CoordinatorEvent& event, TimePoint now) {
  now_ = now;
  if (const auto* said = std::get_if<MessageFromPeer>(&event)) OnMessageFromPeer(*said);
  if (const auto* lost = std::get_if<PeerLost>(&event)) OnPeerLost(lost->peer);
  if (const auto* gone = std::get_if<NodeGone>(&event)) On(*gone);
  if (const auto* refused = std::get_if<OthersRefused>(&event)) On(*refused);
  if (const auto* found = std::get_if<CauseFound>(&event)) On(*found);
  if (const auto* seen = std::get_if<AwaitedEndSeen>(&event)) On(*seen);
  bool ends_pause = std::holds_alternative<EndPause>(event) && phase_ == JobPhase::kPausing;
  if (ends_pause) StartGathering(false);
  OnTick();
  if (IsMutated(Mutation::kRecordKeptLate)) {
    std::stable_partition(actions_.begin(), actions_.end(), [](const CoordinatorAction& action) {
      return !std::holds_alternative<PersistRecord>(action);
    });
  }
  return std::exchange(actions_, {});
}

TimePoint Coordinator::deadline() const {
  TimePoint first = next_silence_check_;
  if (deadline_) first = std::min(first, *deadline_);
  if (phase_ == JobPhase::kGathering) first = std::min(first, gathering_.deadline());
  if (phase_ == JobPhase::kRunning) {
    first = std::min(first, newcomers_.deadline().value_or(first));
    first = std::min(first, finish_deadline_.value_or(first));
  }
  return std::max(first, now_);
}

// --- Messages ---

void Coordinator::OnMessageFromPeer(const MessageFromPeer& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) return OnHello(event.peer, *hello);
  Node* node = roster_.NodeOf(event.peer);
  if (node == nullptr) return;  // its connection is being closed
  node->last_heard = now_;
  std::visit([&](const auto& message) { On(*node, message); }, event.message);
}

void Coordinator::OnHello(PeerId peer, const Hello& hello) {
  if (phase_ == JobPhase::kOver && !roster_.Contains(hello.node)) {
    actions_.emplace_back(SendMessage{peer, *verdict_});
    actions_.emplace_back(HangUp{peer});
    return;
  }
  std::string problem = roster_.ReasonToRefuse(peer, hello, HighestKnownRound());
  if (!problem.empty()) {
    actions_.emplace_back(SendMessage{peer, Refusal{problem}});
    actions_.emplace_back(HangUp{peer});
    return Announce(std::nullopt,
                    events::NodeRefused{hello.name.substr(0, kMaxNameBytes), problem});
  }
  Roster::Arrival arrival = roster_.Register(peer, hello, now_);
  Node& node = arrival.node;
  node.replaced_after = causes_.ReplacedAfter(hello.node);
  if (arrival.replaced) actions_.emplace_back(HangUp{*arrival.replaced});
  if (arrival.is_new || arrival.is_next_incarnation) {
    Announce(std::nullopt, events::NodeJoined{hello.name, hello.incarnation, hello.slots});
  }
  SendTo(node, Waiting{""});
  if (arrival.is_next_incarnation && !IsMutated(Mutation::kIncarnationIgnored)) {
    OnNextIncarnation(node);
  } else {
    OnConnected(node);
    if (hello.stuck) HandleStuck(node);
  }
}

// The hello of the next incarnation proves that the agent has ended, with all
// its descendants.
void Coordinator::OnNextIncarnation(Node& node) {
  node.work = NodeState::kNone;
  if (phase_ == JobPhase::kOver) return SendTo(node, *verdict_);
  if (!IsIn(node)) return TryForm();
  if (phase_ == JobPhase::kPreparing) return StartGathering(gathering_.waits_for_newcomers());
  Cause cause{.text = "the agent of node " + node.hello.name + " died",
              .exit_code = kExitInternalError,
              .node = node.hello.node};
  if (phase_ == JobPhase::kRunning) return BeginStop(cause, node.hello.name);
  if (phase_ == JobPhase::kStopping) PreferLoss(node.hello.node, now_, cause);
  RecordAnswer(node, NodeState::kNone);  // nothing of the round is left there
}

// Handles the hello of a new node, or of one that reconnects.
void Coordinator::OnConnected(Node& node) {
  const Hello& hello = node.hello;
  bool runs = hello.work == NodeState::kRunning || hello.work == NodeState::kStopping;
  if (phase_ == JobPhase::kOver) return SendTo(node, *verdict_);
  // A success that this coordinator does not know ends no other node: nodes that
  // wait for a round would end with 0.
  node.is_leaving |= hello.work == NodeState::kFinished && !IsIn(node);
  AdoptNewerRound(hello);
  bool of_this_round = IsIn(node) && hello.round == round_.number();
  if (!of_this_round && runs) {  // a round that is over
    node.work = NodeState::kStopping;
    if (!node.answer_deadline) node.answer_deadline = StopDeadline(node);
    if (phase_ == JobPhase::kPreparing && !hello.stuck)
      StartGathering(gathering_.waits_for_newcomers());
    return SendTo(node, Stop{hello.round, "the job continued without this node", false});
  }
  switch (phase_) {
    case JobPhase::kGathering:
    case JobPhase::kPausing:
      node.work = NodeState::kNone;
      return TryForm();
    case JobPhase::kPreparing:
      return IsIn(node) ? StartGathering(gathering_.waits_for_newcomers()) : void();
    case JobPhase::kRunning:
      return OnConnectedWhileRunning(node, of_this_round);
    case JobPhase::kStopping:
      if (!IsIn(node)) return;
      if (of_this_round && hello.failure) stop_->ReplaceIfBetter(CauseOn(node, *hello.failure));
      if (of_this_round && runs) return OrderStop(node);
      return RecordAnswer(node, NodeState::kNone);
    case JobPhase::kFinishing:
      if (!IsIn(node)) return;
      if (of_this_round && hello.work == NodeState::kDone)
        return SendTo(node, Finish{round_.number()});
      return RecordAnswer(node, NodeState::kNone);
    case JobPhase::kOver:
      return;
  }
}

void Coordinator::OnConnectedWhileRunning(Node& node, bool of_this_round) {
  const Hello& hello = node.hello;
  NotifyIfSpare(node);
  if (!IsIn(node)) return RegroupForNewcomers();
  if (of_this_round && hello.work == NodeState::kRunning) return;
  if (of_this_round && hello.work == NodeState::kDone) return RecordDone(node);
  if (of_this_round && hello.work == NodeState::kPrepared)
    return SendTo(node, round_.StartRoundFor(hello.node));
  bool is_stopping = of_this_round && hello.work == NodeState::kStopping;
  node.work = is_stopping ? NodeState::kStopping : NodeState::kNone;
  if (hello.failure) return BeginStop(CauseOn(node, *hello.failure), hello.name);
  BeginStop({.text = "node " + hello.name + " lost the coordinator",
             .is_primary = false,
             .consumes_restart = false},
            hello.name);
}

// The member reports a round of a coordinator that this one never knew. Other
// members of that round may still run.
void Coordinator::AdoptNewerRound(const Hello& hello) {
  bool is_newer = hello.round > HighestKnownRound() && !IsMutated(Mutation::kWorldBeginsAnew);
  if (!is_newer) return;
  highest_known_round_ = hello.round;
  attempts_ = std::max(attempts_, hello.attempts);
  gathering_.WaitUntil(now_ + policy_.node_timeout + policy_.kill_bound);
  if (phase_ == JobPhase::kPreparing) StartGathering(gathering_.waits_for_newcomers());
}

void Coordinator::OnPeerLost(PeerId peer) {
  Node* node = roster_.Disconnect(peer);
  if (node == nullptr) return;
  node->broken = now_;
  if (IsMutated(Mutation::kLinkLossIsProof)) return Lose(node->hello.node);
  if (node->is_leaving && node->work == NodeState::kNone) {
    if (round_.Remove(roster_.Remove(node->hello.node).hello.node)) OnAnswer();
  } else if (IsIn(*node) && phase_ == JobPhase::kPreparing) {
    StartGathering(gathering_.waits_for_newcomers());
  }
}

void Coordinator::On(Node& node, const Beat& message) {
  bool is_sound =
      message.unfinished && message.unfinished->size() <= static_cast<size_t>(node.hello.slots);
  if (is_sound && phase_ == JobPhase::kRunning) {
    round_.RecordUnfinished(node.hello.node, *message.unfinished);
  }
  SendTo(node, Beat{message.number});
}

void Coordinator::On(Node& node, const Prepared& message) {
  bool is_ours = message.round == round_.number() || IsMutated(Mutation::kStaleWordCounts);
  if (phase_ != JobPhase::kPreparing || !IsIn(node) || !is_ours) return;
  round_.RecordPrepared(node.hello.node, message);
  RecordAnswer(node, NodeState::kPrepared);
}

// A hang may have no rank. Its reporter is not at fault, nor is a victim's node.
Cause Coordinator::CauseOn(const Node& node, Cause cause) const {
  cause.node.reset();
  const bool is_here = cause.rank >= 0 || phase_ == JobPhase::kPreparing;
  if (is_here && !cause.may_be_victim) cause.node = node.hello.node;
  return cause;
}

void Coordinator::On(Node& node, const Failed& message) {
  if (!IsIn(node) || message.round != round_.number()) return;
  const Cause cause = CauseOn(node, message.cause);
  if (phase_ == JobPhase::kStopping) return stop_->ReplaceIfBetter(cause);
  if (phase_ != JobPhase::kRunning && phase_ != JobPhase::kPreparing) return;
  node.work = phase_ == JobPhase::kRunning ? NodeState::kStopping : NodeState::kNone;
  BeginStop(cause, node.hello.name, node.hello.node);
}

void Coordinator::On(Node& node, const Done& message) {
  bool counts = phase_ == JobPhase::kRunning && IsIn(node) && message.round == round_.number();
  if (counts) RecordDone(node);
}

void Coordinator::On(Node& node, const Stopped& message) {
  node.hello.stuck.reset();
  node.answer_deadline.reset();
  bool of_this_round = IsIn(node) && message.round == round_.number();
  bool is_expected = phase_ == JobPhase::kStopping || phase_ == JobPhase::kFinishing;
  if (is_expected && of_this_round) return RecordAnswer(node, NodeState::kNone);
  if (phase_ == JobPhase::kOver) {  // the node has received the verdict
    node.work = NodeState::kNone;
    node.is_leaving = true;
    return;
  }
  if (phase_ == JobPhase::kRunning && of_this_round) {
    node.work = NodeState::kNone;
    return BeginStop({.text = "node " + node.hello.name + " lost the coordinator",
                      .is_primary = false,
                      .consumes_restart = false},
                     node.hello.name);
  }
  if (IsIn(node) && phase_ != JobPhase::kPausing) return;
  node.work = NodeState::kNone;  // the message is of an old round
  if (phase_ == JobPhase::kGathering) TryForm();
  if (phase_ == JobPhase::kRunning) RegroupForNewcomers();
}

void Coordinator::On(Node& node, const FinishSeen& message) {
  bool counts = phase_ == JobPhase::kFinishing && IsIn(node) && message.round == round_.number();
  if (counts) RecordAnswer(node, NodeState::kFinished);
}

void Coordinator::On(Node& node, const Leave& message) {
  bool is_repeated = std::exchange(node.is_leaving, true);
  Cause cause{.text = "node " + node.hello.name + " leaves: " + message.why,
              .exit_code = kExitDrained,
              .is_primary = false,
              .is_fatal = node.hello.node == policy_.own_node,
              .consumes_restart = IsMutated(Mutation::kLeaveIsFailure)};
  leave_reason_ = cause.text;
  if (!is_repeated) Announce(std::nullopt, events::NodeDropped{node.hello.name, cause.text});
  if (cause.is_fatal) return EndWithCause(node, cause);
  bool nothing_runs = phase_ == JobPhase::kGathering || phase_ == JobPhase::kPreparing ||
                      phase_ == JobPhase::kPausing;
  if (nothing_runs && EndsDrained()) return;
  if (phase_ == JobPhase::kGathering) return TryForm();
  if (!IsIn(node)) return;
  if (phase_ == JobPhase::kPreparing) return StartGathering(gathering_.waits_for_newcomers());
  if (phase_ != JobPhase::kRunning) return;
  node.work = NodeState::kStopping;
  BeginStop(cause, node.hello.name);
}

void Coordinator::On(Node& node, const Close& message) {
  node.is_leaving = true;  // it does not wait for the verdict
  EndWithCause(node, AsFailure(message.cause));
}

// Ends the job because another attempt would not help.
void Coordinator::EndWithCause(Node& node, Cause cause) {
  cause.is_fatal = true;
  switch (phase_) {
    case JobPhase::kGathering:
    case JobPhase::kPausing:
      return End({cause.exit_code, cause.text});
    case JobPhase::kPreparing:
    case JobPhase::kRunning:
      if (node.work == NodeState::kRunning) node.work = NodeState::kStopping;
      return BeginStop(cause, node.hello.name);
    case JobPhase::kStopping:
      return stop_->EndWith(cause) ? Persist() : void();
    case JobPhase::kFinishing:
    case JobPhase::kOver:
      return;
  }
}

// Ends the job if leaves have reduced it to fewer than MIN nodes.
bool Coordinator::EndsDrained() {
  bool is_drained = roster_.HasFewerThanMin() && !leave_reason_.empty() && attempts_ > 0;
  if (!is_drained) return false;
  Verdict drained{kExitDrained, leave_reason_ + "; fewer nodes are left than --nnodes requires"};
  outcome_.reason = drained.text;
  outcome_.exit_code = drained.exit_code;
  outcome_.is_fatal = true;
  End(drained);
  return true;
}

void Coordinator::NotifyIfSpare(const Node& node) {
  bool has_room = round_.assignments().size() < static_cast<size_t>(policy_.max_nodes);
  if (IsIn(node) || node.is_leaving || has_room) return;
  std::string text =
      "the job has its " + std::to_string(policy_.max_nodes) + " nodes; this one is a spare";
  if (node.replaced_after > 0) text += ": replaced after " + FailuresInARow(node.replaced_after);
  SendTo(node, Waiting{text});
}

void Coordinator::Persist() {
  actions_.emplace_back(
      PersistRecord{{.round = round_.number(),
                     .attempts = attempts_,
                     .is_granted = is_granted_,
                     .has_finished = has_finished_,
                     .has_lost = has_lost_,
                     .cause = stop_ ? std::optional(stop_->cause()) : std::nullopt,
                     .outcome = outcome_,
                     .history = history_,
                     .causes = causes_,
                     .assignments = round_.assignments(),
                     .verdict = verdict_}});
}

void Coordinator::Announce(std::optional<int> attempt, events::Decision decision) {
  actions_.emplace_back(Announcement{attempt, std::move(decision)});
}

void Coordinator::SendTo(const Node& node, CoordinatorMessage message) {
  if (node.peer) actions_.emplace_back(SendMessage{*node.peer, std::move(message)});
}

}  // namespace rankrun::agent
