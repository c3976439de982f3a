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

// Returns the reason to refuse a node for the values in its hello; empty: none.
std::string ProblemOf(const Hello& hello, const CoordinatorPolicy& policy, int known_round) {
  if (hello.min_nodes != policy.min_nodes || hello.max_nodes != policy.max_nodes) {
    return "this node was started with --nnodes " + Nodes(hello.min_nodes, hello.max_nodes) +
           ", the job has " + Nodes(policy.min_nodes, policy.max_nodes);
  }
  if (std::max(hello.round, hello.attempts) > known_round + kMaxRoundsAhead) {
    return "this node claims round " + std::to_string(hello.round) + " and attempt " +
           std::to_string(hello.attempts) + ", the job is at round " + std::to_string(known_round);
  }
  bool is_sound = hello.name.size() <= kMaxNameBytes && hello.slots >= 1 &&
                  hello.slots <= kMaxSlots && IsCount(hello.round) && IsCount(hello.attempts) &&
                  IsCount(hello.incarnation) && IsCount(hello.stop_ms);
  return is_sound ? "" : "this node sent an invalid hello";
}

}  // namespace

bool Coordinator::MayTakePart(PeerId peer, const Hello& hello) {
  std::string problem = ReasonToRefuse(peer, hello);
  if (problem.empty()) return true;
  actions_.emplace_back(SendMessage{peer, Refusal{std::move(problem)}});
  actions_.emplace_back(HangUp{peer});
  return false;
}

// Returns nothing for a node that may take part.
std::string Coordinator::ReasonToRefuse(PeerId peer, const Hello& hello) const {
  auto registered = node_of_peer_.find(peer);
  if (registered != node_of_peer_.end() && registered->second != hello.node) {
    return "this connection belongs to another node";
  }
  auto known = nodes_.find(hello.node);
  if (known == nodes_.end() && nodes_.size() >= MaxKnownNodes(policy_)) {
    return "the job has " + std::to_string(nodes_.size()) + " nodes and spares already";
  }
  if (known != nodes_.end() && hello.incarnation < known->second.hello.incarnation) {
    return "a newer agent of this node has joined";
  }
  if (IsGivenUp(hello)) return "this node was given up: it did not stop or make ready";
  int known_round = std::max(record_.round, highest_known_round_);
  std::string problem = ProblemOf(hello, policy_, known_round);
  if (!problem.empty() || !hello.node_rank || known != nodes_.end()) return problem;
  for (const auto& [id, other] : nodes_) {
    if (other.peer && other.hello.node_rank == hello.node_rank) {
      return "node rank " + std::to_string(*hello.node_rank) + " is claimed by " + hello.name +
             " and by " + other.hello.name + ", which joined first";
    }
  }
  return "";
}

}  // namespace rankrun::agent
