#include "tests/sim/verdict/round.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "agent/coordination/coordinator.h"
#include "agent/report/verdict.h"

namespace rankrun::sim {
namespace {

using agent::PeerId;

constexpr int kRound = 1;

std::string NameOf(size_t node) { return "n" + std::to_string(node); }

// Returns the failure with which the agent of a node stops the others: the first that it saw
// before any signal, or a hang.
std::optional<agent::Cause> FailureOf(const SceneNode& node) {
  for (size_t i : node.ended) {
    const agent::WorkerRecord& worker = node.workers[i];
    const bool stops_others = worker.sent_signal == 0 || !worker.hang.empty();
    if (!worker.failed() || !stops_others) continue;
    return agent::Cause{.text = "rank " + std::to_string(worker.global_rank),
                        .exit_code = agent::ExitCodeOf(worker),
                        .rank = worker.global_rank,
                        .is_primary = agent::FailedByItself(agent::EndKindOf(worker))};
  }
  return std::nullopt;
}

// A coordinator and the messages of its nodes. Node i has connection i + 1.
class Round {
 public:
  Round(const Scene& scene, Dice& dice)
      : scene_(scene), coordinator_(PolicyFor(scene, dice), std::nullopt, now_) {
    for (size_t i = 0; i < scene.nodes.size(); ++i) Tell(i, HelloOf(i, 0));
    for (size_t i = 0; i < scene.nodes.size(); ++i) Tell(i, agent::Prepared{kRound, 5});
  }

  void Fail(const std::vector<size_t>& order) {
    for (size_t node : order) {
      auto failure = FailureOf(scene_.nodes[node]);
      if (failure && !IsLost(node)) Tell(node, agent::Failed{kRound, *failure});
    }
  }

  void LoseNode() {
    if (scene_.loss == Loss::kAgentsDeath)
      return Tell(scene_.lost_node, HelloOf(scene_.lost_node, 1));
    while (coordinator_.phase() == agent::JobPhase::kRunning || now_ < lost_at_ + kSilence) {
      now_ += std::chrono::seconds(1);
      for (size_t i = 0; i < scene_.nodes.size(); ++i) {
        if (!IsLost(i)) Tell(i, agent::Beat{1});
      }
      coordinator_.Step(agent::Tick{}, now_);
    }
  }

  agent::RoundOutcome End() {
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      if (!IsLost(i)) Tell(i, agent::Stopped{kRound});
    }
    return coordinator_.outcome();
  }

 private:
  static constexpr std::chrono::seconds kSilence{12};

  static agent::CoordinatorPolicy PolicyFor(const Scene& scene, Dice& dice) {
    const auto nodes = static_cast<int>(scene.nodes.size());
    return {.min_nodes = nodes,
            .max_nodes = nodes,
            .restart = {.max_restarts = dice.Below(2)},
            .own_node = scene.loss != Loss::kNone && scene.lost_node == 0 ? 2U : 1U};
  }

  bool IsLost(size_t node) const { return scene_.loss != Loss::kNone && node == scene_.lost_node; }

  agent::Hello HelloOf(size_t node, int incarnation) const {
    const auto nodes = static_cast<int>(scene_.nodes.size());
    return {.node = node + 1,
            .incarnation = incarnation,
            .name = NameOf(node),
            .slots = static_cast<int>(scene_.nodes[node].workers.size()),
            .min_nodes = nodes,
            .max_nodes = nodes};
  }

  void Tell(size_t node, agent::MemberMessage message) {
    const bool is_next = IsLost(node) && std::holds_alternative<agent::Hello>(message) &&
                         std::get<agent::Hello>(message).incarnation > 0;
    const PeerId peer = node + 1 + (is_next ? scene_.nodes.size() : 0);
    coordinator_.Step(agent::MessageFromPeer{peer, std::move(message)}, now_);
  }

  const Scene& scene_;
  TimePoint now_{std::chrono::hours(1)};
  TimePoint lost_at_ = now_;
  agent::Coordinator coordinator_;
};

}  // namespace

agent::RoundOutcome DecideOnRound(const Scene& scene, Dice& dice) {
  std::vector<size_t> order;
  for (size_t i = 0; i < scene.nodes.size(); ++i) order.push_back(i);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(dice.Below(static_cast<int>(i)))]);
  }
  std::stable_partition(order.begin(), order.end(), [&](size_t node) {
    const auto is_culprit = [&](const Actor& actor) { return actor.rank == scene.culprit; };
    return scene.culprit_is_first && std::ranges::any_of(scene.nodes[node].actors, is_culprit);
  });
  Round round(scene, dice);
  const bool is_noticed_first = dice.Chance(50);
  if (is_noticed_first) round.Fail(order);
  if (scene.loss != Loss::kNone) round.LoseNode();
  if (!is_noticed_first) round.Fail(order);
  return round.End();
}

}  // namespace rankrun::sim
