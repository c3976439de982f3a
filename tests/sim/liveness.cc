#include <algorithm>
#include <string>
#include <utility>

#include "tests/sim/node.h"

// The third part of Node: its liveness port, and the coordinator's dials of such ports.

namespace rankrun::sim {
namespace {

constexpr int kRejectPercent = 25;  // of the hosts

}  // namespace

uint16_t Node::PortOf(int number) { return static_cast<uint16_t>(1 + number); }

void Node::OpenLivenessPort() {
  Host& host = stage_.hosts[setup_.host];
  if (!host.rejects) host.rejects = stage_.liveness_dice.Chance(kRejectPercent);
  network_.OpenPort(PortOf(setup_.number), setup_.host, [this] { return life_ != Life::kOver; });
}

void Node::NoteMessage(ConnectionId peer, const agent::MemberMessage& message) {
  if (life_ != Life::kUp || !coordinator_) return;
  TimePoint now = stage_.LocalNow(setup_.host);
  auto watched = watched_.find(peer);
  if (watched != watched_.end()) watch_->OnMessage(watched->second, now);
  const auto* hello = std::get_if<agent::Hello>(&message);
  if (hello == nullptr || hello->node == id_) return;
  const agent::CoordinatorNode* node = coordinator_->Find(hello->node);
  if (node == nullptr || node->peer != peer) return;
  watched_[peer] = hello->node;
  watch_->OnHello(hello->node, {hello->name, *hello->liveness_port}, now);
  ArmWatch();
}

void Node::NoteBreak(ConnectionId peer) {
  auto watched = watched_.find(peer);
  if (life_ != Life::kUp || !coordinator_ || watched == watched_.end()) return;
  uint64_t node = watched->second;
  watched_.erase(watched);
  watch_->OnBroken(node, stage_.LocalNow(setup_.host));
  ArmWatch();
}

void Node::ArmWatch() {
  auto deadline = watch_->deadline();
  if (has_retired_ || !deadline) return;
  TimePoint at = std::max(stage_.time.now(), *deadline + stage_.hosts[setup_.host].stood_still);
  if (watch_armed_ > stage_.time.now() && watch_armed_ <= at) return;
  watch_armed_ = at;
  stage_.time.At(at, [this, life = agent_life_] {
    if (life != agent_life_) return;
    Post([this] {
      watch_armed_ = {};
      DialPorts();
    });
  });
}

void Node::DialPorts() {
  TimePoint now = stage_.LocalNow(setup_.host);
  for (const agent::LivenessDial& dial : watch_->Due(now)) {
    if (coordinator_->Find(dial.node) == nullptr) {
      watch_->Forget(dial.node);
      watch_->OnAnswer(dial.number, agent::LivenessAnswer::kNone, now);
      continue;
    }
    auto on_answer = [this, life = agent_life_,
                      number = dial.number](agent::LivenessAnswer answer) {
      if (life == agent_life_) Post([this, number, answer] { OnPortDialled(number, answer); });
    };
    network_.DialPort(setup_.host, dial.target.port, on_answer);
  }
  ArmWatch();
}

void Node::OnPortDialled(uint64_t dial, agent::LivenessAnswer answer) {
  auto gone = watch_->OnAnswer(dial, answer, stage_.LocalNow(setup_.host));
  ArmWatch();
  if (!gone || has_retired_) return;
  stage_.Trace(name_, [&] { return "finds that port " + std::to_string(gone->port) + " refuses"; });
  StepCoordinator(*gone);
}

}  // namespace rankrun::sim
