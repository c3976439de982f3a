#include <algorithm>
#include <utility>

#include "agent/coordinator.h"
#include "agent/exit_codes.h"
#include "agent/mutation.h"
#include "base/format.h"

// The third part of Coordinator: nodes that are lost, or count as lost.

namespace rankrun::agent {

void Coordinator::LoseSilentNodes() {
  std::vector<uint64_t> silent;
  for (const auto& [id, node] : nodes_) {
    bool is_silent = now_ - node.heard >= policy_.node_timeout;
    bool is_here = id == policy_.own_node && node.peer;  // in this very process
    if (is_silent && !is_here) silent.push_back(id);
  }
  for (uint64_t id : silent) Lose(id);
}

// Silence proves nothing, but after its time the node's workers are being
// killed by its own agent or guardian.
void Coordinator::Lose(uint64_t id) {
  auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Remove(id, policy_.kill_bound,
         "node " + found->second.hello.name + " has been silent for " +
             FormatSeconds(policy_.node_timeout) + " (--node-timeout)");
}

TimePoint Coordinator::StopBy(const Node& node) const {
  return now_ + std::chrono::milliseconds(node.hello.stop_ms) + policy_.answer_patience;
}

// They beat, but what they were told to do is long overdue. Nobody answers
// their beats from here on, so that their lease ends.
void Coordinator::GiveUpLateNodes() {
  std::vector<uint64_t> late;
  for (const auto& [id, node] : nodes_) {
    if (node.answer_by && now_ >= *node.answer_by) late.push_back(id);
  }
  for (uint64_t id : late) {
    auto found = nodes_.find(id);
    if (found == nodes_.end()) continue;
    const Node& node = found->second;
    bool was_to_stop = node.work == Work::kRunning || node.work == Work::kStopping;
    std::string text = "node " + node.hello.name + " is given up: it lives, but has not " +
                       (was_to_stop ? "stopped its workers" : "made ready") +
                       " long after it was told to";
    given_up_[id] = node.hello.incarnation;
    Say(node, Refusal{text});
    Remove(id, policy_.node_timeout + policy_.kill_bound, text);
  }
}

bool Coordinator::IsGivenUp(const Hello& hello) const {
  auto found = given_up_.find(hello.node);
  return found != given_up_.end() && hello.incarnation <= found->second;
}

// `may_live`: how long workers of it may.
void Coordinator::Remove(uint64_t id, Duration may_live, const std::string& text) {
  Node node = std::move(nodes_.extract(id).mapped());
  if (node.peer) {
    actions_.emplace_back(HangUp{*node.peer});
    node_of_peer_.erase(*node.peer);
  }
  bool may_run = node.work == Work::kRunning || node.work == Work::kStopping;
  if (may_run && !IsMutated(Mutation::kKillBoundIgnored)) {
    not_before_ = std::max(not_before_, now_ + may_live);
    record_.has_lost = true;
    Persist();
  }
  Cause cause = LossOf(text);
  switch (phase_) {
    case JobPhase::kGathering:
      return TryForm();
    case JobPhase::kPreparing:
      return IsIn(node) ? Gather(waits_for_newcomers_) : void();
    case JobPhase::kRunning:
      return IsIn(node) && may_run ? BeginStop(cause) : void();
    case JobPhase::kStopping:
      Improve(cause);
      if (IsIn(node)) NoteLossMeanwhile(cause);
      return Settle(node, Work::kNone);
    case JobPhase::kFinishing:
      return Settle(node, Work::kNone);
    case JobPhase::kPausing:
    case JobPhase::kOver:
      return;
  }
}

Cause Coordinator::LossOf(const std::string& text) const {
  return {.text = text,
          .exit_code = kExitTooFewNodes,
          .is_hopeless = policy_.on_lost_node == LostNode::kStop,
          .charges_budget = false};
}

// While the round was being stopped for another cause.
void Coordinator::NoteLossMeanwhile(Cause loss) {
  Cause& cause = *record_.cause;
  if (cause.text == loss.text || cause.is_hopeless) return;
  for (const auto& [id, node] : nodes_) Say(node, NodeLost{loss.text});
  if (!lost_meanwhile_.empty()) lost_meanwhile_ += "; ";
  lost_meanwhile_ += loss.text;
  if (!loss.is_hopeless) return;
  loss.rank = cause.rank;
  loss.text += "; before that: " + cause.text;
  cause = loss;
  Persist();
}

void Coordinator::On(Node& node, const Stuck& message) {
  if (IsIn(node) && message.round != record_.round) return;
  node.hello.stuck = message.process;
  NoteStuck(node);
}

// What does not die of SIGKILL runs no program any more: the others need not
// wait, and the node may come back once it is rid of it.
void Coordinator::NoteStuck(Node& node) {
  if (phase_ == JobPhase::kOver) return;
  node.work = Work::kStopping;
  node.answer_by.reset();
  if (phase_ == JobPhase::kGathering) return TryForm();
  if (!IsIn(node)) return;
  Cause loss = LossOf(StuckText(node));
  if (phase_ == JobPhase::kPreparing) return Gather(waits_for_newcomers_);
  if (phase_ == JobPhase::kRunning) BeginStop(loss);
  if (phase_ == JobPhase::kStopping && node.is_awaited) NoteLossMeanwhile(loss);
  Settle(node, node.work);
}

// "node n2 counts as lost: rank 3, pid 71 (python3), state D in nfs_wait, does
// not die of SIGKILL"
std::string Coordinator::StuckText(const Node& node) const {
  const StuckProcess& process = *node.hello.stuck;
  const Seat& seat = record_.seats[static_cast<size_t>(*node.seat)];
  std::string who;
  if (process.local_rank >= 0) {
    who = "rank " + std::to_string(seat.first_rank + process.local_rank) + ", ";
  }
  return "node " + node.hello.name + " counts as lost: " + who + process.what +
         ", does not die of SIGKILL";
}

}  // namespace rankrun::agent
