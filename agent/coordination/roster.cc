#include "agent/coordination/roster.h"

#include <algorithm>
#include <utility>

#include "agent/coordination/hello.h"
#include "base/format.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxSpares = 10'000;

}  // namespace

Roster::Node* Roster::NodeOf(PeerId peer) {
  auto found = node_of_peer_.find(peer);
  return found == node_of_peer_.end() ? nullptr : &nodes_.at(found->second);
}

std::string Roster::ReasonToRefuse(PeerId peer, const Hello& hello, int known_round) const {
  auto registered = node_of_peer_.find(peer);
  if (registered != node_of_peer_.end() && registered->second != hello.node) {
    return "this connection belongs to another node";
  }
  auto known = nodes_.find(hello.node);
  if (known == nodes_.end() && nodes_.size() >= static_cast<size_t>(max_nodes_) + kMaxSpares) {
    return "the job has " + std::to_string(nodes_.size()) + " nodes and spares already";
  }
  if (known != nodes_.end() && hello.incarnation < known->second.hello.incarnation) {
    return "a newer agent of this node has joined";
  }
  auto given_up = given_up_.find(hello.node);
  if (given_up != given_up_.end() && hello.incarnation <= given_up->second) {
    return "this node was given up: it did not stop or make ready";
  }
  std::string problem = ProblemOf(hello, min_nodes_, max_nodes_, known_round);
  if (!problem.empty() || !hello.node_rank || known != nodes_.end()) return problem;
  for (const auto& [id, other] : nodes_) {
    if (other.peer && other.hello.node_rank == hello.node_rank) {
      return "node rank " + std::to_string(*hello.node_rank) + " is claimed by " + hello.name +
             " and by " + other.hello.name + ", which joined first";
    }
  }
  return "";
}

Roster::Node& Roster::Expect(const Hello& hello, TimePoint now) {
  Node& node = nodes_[hello.node];
  node.hello = hello;
  node.last_heard = now;
  return node;
}

Roster::Arrival Roster::Register(PeerId peer, const Hello& hello, TimePoint now) {
  auto [entry, is_new] = nodes_.try_emplace(hello.node);
  Node& node = entry->second;
  if (is_new) node.arrival = ++arrivals_;
  Arrival arrival{.node = node,
                  .is_new = is_new,
                  .is_next_incarnation = !is_new && hello.incarnation > node.hello.incarnation,
                  .replaced = node.peer == peer ? std::nullopt : node.peer};
  if (arrival.replaced) node_of_peer_.erase(*arrival.replaced);
  node.hello = hello;
  node.peer = peer;
  node.last_heard = now;
  node_of_peer_[peer] = hello.node;
  return arrival;
}

Roster::Node* Roster::Disconnect(PeerId peer) {
  Node* node = NodeOf(peer);
  node_of_peer_.erase(peer);
  if (node != nullptr) node->peer.reset();
  return node;
}

Roster::Node Roster::Remove(uint64_t id) {
  Node node = std::move(nodes_.extract(id).mapped());
  if (node.peer) node_of_peer_.erase(*node.peer);
  return node;
}

std::vector<uint64_t> Roster::RemoveDeparted() {
  std::vector<uint64_t> departed;
  for (const auto& [id, node] : nodes_) {
    if (node.is_leaving && !node.peer) departed.push_back(id);
  }
  for (uint64_t id : departed) nodes_.erase(id);
  return departed;
}

std::vector<uint64_t> Roster::Silent(TimePoint now, Duration timeout, uint64_t here) const {
  std::vector<uint64_t> silent;
  for (const auto& [id, node] : nodes_) {
    bool is_silent = now - node.last_heard >= timeout;
    bool is_here = id == here && node.peer;
    if (is_silent && !is_here) silent.push_back(id);
  }
  return silent;
}

std::vector<uint64_t> Roster::Late(TimePoint now) const {
  std::vector<uint64_t> late;
  for (const auto& [id, node] : nodes_) {
    if (node.answer_deadline && now >= *node.answer_deadline) late.push_back(id);
  }
  return late;
}

bool Roster::HasFewerThanMin() const {
  auto stays = [](const auto& entry) { return !entry.second.is_leaving; };
  return std::ranges::count_if(nodes_, stays) < min_nodes_;
}

uint64_t Roster::IdOf(const std::string& name) const {
  uint64_t only = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.hello.name != name) continue;
    if (only != 0) return 0;
    only = id;
  }
  return only;
}

bool Roster::HasMoreThanMax() const {
  auto is_ready = [](const auto& entry) {
    const Node& node = entry.second;
    return node.peer && !node.is_leaving && node.work == NodeState::kNone;
  };
  return std::ranges::count_if(nodes_, is_ready) > max_nodes_;
}

std::string Roster::RollCall(Duration waited) const {
  constexpr size_t kMaxNames = 8;
  size_t here = 0;
  std::string names;
  for (const auto& [id, node] : nodes_) {
    if (!node.peer || node.is_leaving || node.hello.stuck) continue;
    if (++here > kMaxNames) continue;
    if (!names.empty()) names += ", ";
    names += node.hello.name;
  }
  if (here > kMaxNames) names += ", ...";
  return std::to_string(here) + " of " + std::to_string(min_nodes_) +
         (min_nodes_ == 1 ? " node is" : " nodes are") + " here after " + FormatSeconds(waited) +
         (names.empty() ? "" : " (" + names + ")");
}

}  // namespace rankrun::agent
