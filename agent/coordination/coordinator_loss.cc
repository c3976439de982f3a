#include <algorithm>
#include <utility>

#include "agent/coordination/coordinator.h"
#include "agent/coordination/loss.h"
#include "agent/coordination/mutation.h"

// The third part of Coordinator: nodes that are lost or count as lost.

namespace rankrun::agent {

void Coordinator::LoseSilentNodes() {
  // The own node's member is in this process.
  for (uint64_t id : roster_.Silent(now_, policy_.node_timeout, policy_.own_node)) Lose(id);
}

// Silence alone proves nothing. But after the node timeout, the agent or the
// guardian of the silent node is killing its workers.
void Coordinator::Lose(uint64_t id) {
  if (!roster_.Contains(id)) return;
  Remove(id, policy_.kill_bound, SilenceText(roster_.at(id).hello, policy_.node_timeout));
}

const CoordinatorNode* Coordinator::Find(uint64_t node) const {
  auto found = roster_.nodes().find(node);
  return found == roster_.nodes().end() ? nullptr : &found->second;
}

// No process is left that could kill the workers, but the kernel has killed them: the death
// of their agent was their PDEATHSIG.
void Coordinator::On(const NodeGone& event) {
  if (!roster_.Contains(event.node)) return;
  Remove(event.node, policy_.gone_bound, GoneText(roster_.at(event.node).hello, event.port));
}

TimePoint Coordinator::StopDeadline(const Node& node) const {
  auto claimed = std::chrono::milliseconds(node.hello.stop_ms);
  return now_ + std::min(claimed, policy_.max_stop) + policy_.answer_timeout;
}

// Gives up nodes that send beats but have not answered in time. The coordinator
// no longer answers their beats, so that their lease ends.
void Coordinator::GiveUpLateNodes() {
  for (uint64_t id : roster_.Late(now_)) {
    if (!roster_.Contains(id)) continue;
    const Node& node = roster_.at(id);
    std::string text = GivenUpText(node);
    roster_.GiveUp(node);
    SendTo(node, Refusal{text});
    Remove(id, policy_.node_timeout + policy_.kill_bound, text);
  }
}

// `may_live`: longest time that workers of the node may live from now on.
void Coordinator::Remove(uint64_t id, Duration may_live, const std::string& text) {
  Node node = roster_.Remove(id);
  if (phase_ != JobPhase::kOver && !node.is_leaving) {
    Announce(std::nullopt, events::NodeDropped{node.hello.name, text});
  }
  if (node.peer) actions_.emplace_back(HangUp{*node.peer});
  bool may_run = node.work == NodeState::kRunning || node.work == NodeState::kStopping;
  if (may_run && !IsMutated(Mutation::kKillBoundIgnored)) {
    gathering_.WaitUntil(now_ + may_live);
    has_lost_ = true;
    Persist();
  }
  Cause cause = LossCause(text, policy_.on_lost_node);
  bool was_in = round_.Contains(id);
  bool had_store = was_in && round_.IsStoreHost(id);
  bool was_awaited = round_.Remove(id);
  switch (phase_) {
    case JobPhase::kGathering:
      return TryForm();
    case JobPhase::kPreparing:
      return was_in ? StartGathering(gathering_.waits_for_newcomers()) : void();
    case JobPhase::kRunning:
      if (had_store && !may_run) store_loss_ = cause;
      if (!was_in || !may_run) return;
      AnnounceLoss(cause);
      return BeginStop(cause, node.hello.name);
    case JobPhase::kStopping:
      if (was_in) {
        PreferLoss(id, std::max(node.last_heard, node.broken), cause);
        RecordLoss(cause);
      }
      return was_awaited ? OnAnswer() : void();
    case JobPhase::kFinishing:
      return was_awaited ? OnAnswer() : void();
    case JobPhase::kPausing:
    case JobPhase::kOver:
      return;
  }
}

void Coordinator::PreferLoss(uint64_t node, TimePoint since, const Cause& loss) {
  if (stop_->PreferLoss(node, since, loss)) Persist();
}

void Coordinator::PreferStoreLoss(RoundVerdict& stop) {
  const std::optional<Cause> loss = std::exchange(store_loss_, std::nullopt);
  const bool is_victims = !stop.cause().is_primary && stop.cause().consumes_restart;
  if (!loss || !is_victims || stop.cause().is_fatal) return;
  stop.ReplaceIfBetter(*loss);
  AnnounceLoss(*loss);
}

// Announces that the job goes on without a node.
void Coordinator::AnnounceLoss(const Cause& loss) {
  if (loss.is_fatal) return;
  for (const auto& [id, node] : roster_.nodes()) SendTo(node, NodeLost{loss.text});
}

// Records a loss while the round is being stopped, perhaps for another cause.
void Coordinator::RecordLoss(const Cause& loss) {
  if (!stop_->cause().is_fatal) AnnounceLoss(loss);
  if (stop_->RecordLoss(loss)) Persist();
}

void Coordinator::On(Node& node, const Stuck& message) {
  if (IsIn(node) && message.round != round_.number()) return;
  node.hello.stuck = message.process;
  HandleStuck(node);
}

// A process that SIGKILL has reached runs no user code any more. So the other
// nodes need not wait for it. The node may join again once it is gone.
void Coordinator::HandleStuck(Node& node) {
  if (phase_ == JobPhase::kOver) return;
  node.work = NodeState::kStopping;
  node.answer_deadline.reset();
  if (phase_ == JobPhase::kGathering) return TryForm();
  if (!IsIn(node)) return;
  Cause loss =
      LossCause(StuckText(node.hello, round_.AssignmentOf(node.hello.node)), policy_.on_lost_node);
  if (round_.IsAwaited(node.hello.node)) {
    Announce(std::nullopt, events::NodeDropped{node.hello.name, loss.text});
  }
  if (phase_ == JobPhase::kPreparing) return StartGathering(gathering_.waits_for_newcomers());
  if (phase_ == JobPhase::kRunning) BeginStop(loss, node.hello.name);
  if (phase_ == JobPhase::kStopping && round_.IsAwaited(node.hello.node)) RecordLoss(loss);
  RecordAnswer(node, node.work);
}

}  // namespace rankrun::agent
