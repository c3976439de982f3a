#include "agent/coordination/newcomer_watch.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

// Returns whether a node of the round has the node rank that this one claims.
bool IsClaimTaken(const Hello& hello, const Roster& roster, const RoundInProgress& round) {
  if (!hello.node_rank) return false;
  return std::ranges::any_of(roster.nodes(), [&](const auto& entry) {
    return round.Contains(entry.first) && entry.second.hello.node_rank == hello.node_rank;
  });
}

}  // namespace

bool IsIdle(const Roster::Node& node, const Roster& roster, const RoundInProgress& round) {
  const bool is_free = !round.Contains(node.hello.node) && node.peer && !node.is_leaving &&
                       node.work == NodeState::kNone;
  return is_free && !IsClaimTaken(node.hello, roster, round);
}

std::optional<std::string> NewcomerWatch::Look(const Roster& roster, const RoundInProgress& round,
                                               TimePoint now) {
  int room = max_nodes_ - static_cast<int>(round.assignments().size());
  int free = 0;
  std::string name;
  for (const auto& [id, node] : roster.nodes()) {
    if (!IsIdle(node, roster, round)) continue;
    name = node.hello.name;
    free += 1;
  }
  if (room == 0 || free == 0) {
    Reset();
    return std::nullopt;
  }
  if (free >= room) regroup_at_ = now;
  if (!regroup_at_) regroup_at_ = now + last_call_;
  if (now < *regroup_at_) return std::nullopt;
  return name;
}

}  // namespace rankrun::agent
