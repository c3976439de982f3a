#include "agent/coordination/round.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <tuple>

namespace rankrun::agent {
namespace {

constexpr int kLast = std::numeric_limits<int>::max();

auto Order(const Candidate& c) {
  return std::tuple(c.claimed_rank.value_or(kLast), c.scheduler_index.value_or(kLast),
                    c.earlier_rank.value_or(kLast), c.arrival);
}

// Orders the candidates if there are too many: the first ones are chosen.
auto Standing(const Candidate& c) {
  bool newcomer = !c.earlier_rank && !c.claimed_rank;
  return std::tuple(c.replaced_after, newcomer, Order(c));
}

}  // namespace

std::vector<NodeAssignment> AssignNodeRanks(std::vector<Candidate> candidates, int max_nodes) {
  std::ranges::sort(candidates, {}, Standing);
  auto limit = static_cast<size_t>(max_nodes);
  if (candidates.size() > limit) candidates.resize(limit);
  std::ranges::sort(candidates, {}, Order);
  std::vector<NodeAssignment> assignments;
  int first_rank = 0;
  for (Candidate& c : candidates) {
    assignments.push_back({.node = c.node,
                           .incarnation = c.incarnation,
                           .name = std::move(c.name),
                           .slots = c.slots,
                           .first_rank = first_rank});
    first_rank += c.slots;
  }
  return assignments;
}

void DropDoubleClaims(std::vector<Candidate>& candidates) {
  std::ranges::sort(candidates, {}, Order);
  auto is_double = [](const Candidate& a, const Candidate& b) {
    return a.claimed_rank && a.claimed_rank == b.claimed_rank;
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), is_double), candidates.end());
}

int WorldSizeOf(const std::vector<NodeAssignment>& assignments) {
  return assignments.empty() ? 0 : assignments.back().first_rank + assignments.back().slots;
}

// FNV-1a: detects mistakes, not attacks.
std::string DigestOf(int round, const std::vector<NodeAssignment>& assignments) {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&hash](uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
  };
  add(static_cast<uint64_t>(round));
  for (const NodeAssignment& assignment : assignments) {
    add(assignment.node);
    add(static_cast<uint64_t>(assignment.incarnation));
    add(static_cast<uint64_t>(assignment.slots));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace rankrun::agent
