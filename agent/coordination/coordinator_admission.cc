#include <algorithm>
#include <utility>

#include "agent/coordination/coordinator.h"

// The part of Coordinator that decides whether a node may take part. Members
// know the job secret, but one of them may be broken or hostile.

namespace rankrun::agent {
namespace {

constexpr size_t kMaxNameBytes = 256;     // of a node
constexpr int kMaxSlots = 1 << 14;        // of a node, so that sums cannot overflow
constexpr int kMaxCount = 1'000'000'000;  // limit of the counters in a hello
constexpr int kMaxRoundsAhead = 10'000;   // of a node that comes from another coordinator
constexpr size_t kMaxSpares = 10'000;

bool IsCount(int number) { return number >= 0 && number <= kMaxCount; }

size_t MaxKnownNodes(const CoordinatorPolicy& policy) {
  return static_cast<size_t>(policy.max_nodes) + kMaxSpares;
}

std::string Nodes(int min, int max) {
  return min == max ? std::to_string(max) : std::to_string(min) + ":" + std::to_string(max);
}

}  // namespace

bool Coordinator::MayTakePart(PeerId peer, const Hello& hello) {
  auto refuse = [&](const std::string& text) {
    actions_.emplace_back(SendMessage{peer, Refusal{text}});
    actions_.emplace_back(HangUp{peer});
    return false;
  };
  auto registered = node_of_peer_.find(peer);
  if (registered != node_of_peer_.end() && registered->second != hello.node) {
    return refuse("this connection belongs to another node");
  }
  auto known = nodes_.find(hello.node);
  if (known == nodes_.end() && nodes_.size() >= MaxKnownNodes(policy_)) {
    return refuse("the job has " + std::to_string(nodes_.size()) + " nodes and spares already");
  }
  if (known != nodes_.end() && hello.incarnation < known->second.hello.incarnation) {
    return refuse("a newer agent of this node has joined");
  }
  if (IsGivenUp(hello)) return refuse("this node was given up: it did not stop or make ready");
  if (hello.min_nodes != policy_.min_nodes || hello.max_nodes != policy_.max_nodes) {
    return refuse("this node was started with --nnodes " + Nodes(hello.min_nodes, hello.max_nodes) +
                  ", the job has " + Nodes(policy_.min_nodes, policy_.max_nodes));
  }
  int known_round = std::max(record_.round, highest_known_round_);
  if (hello.round > known_round + kMaxRoundsAhead ||
      hello.attempts > known_round + kMaxRoundsAhead) {
    return refuse("this node claims round " + std::to_string(hello.round) + " and attempt " +
                  std::to_string(hello.attempts) + ", the job is at round " +
                  std::to_string(known_round));
  }
  bool is_sound = hello.name.size() <= kMaxNameBytes && hello.slots >= 1 &&
                  hello.slots <= kMaxSlots && IsCount(hello.round) && IsCount(hello.attempts) &&
                  IsCount(hello.incarnation) && IsCount(hello.stop_ms);
  if (!is_sound) {
    return refuse("this node sent an invalid hello");
  }
  if (!hello.node_rank || known != nodes_.end()) return true;
  for (const auto& [id, other] : nodes_) {
    if (other.peer && other.hello.node_rank == hello.node_rank) {
      return refuse("node rank " + std::to_string(*hello.node_rank) + " is claimed by " +
                    hello.name + " and by " + other.hello.name + ", which joined first");
    }
  }
  return true;
}

}  // namespace rankrun::agent
