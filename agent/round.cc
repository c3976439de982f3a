#include "agent/round.h"

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

// Who stays if there are too many.
auto Standing(const Candidate& c) {
  bool newcomer = !c.earlier_rank && !c.claimed_rank;
  return std::tuple(newcomer, Order(c));
}

}  // namespace

std::vector<Seat> SeatNodes(std::vector<Candidate> candidates, int most) {
  std::ranges::sort(candidates, {}, Standing);
  if (candidates.size() > static_cast<size_t>(most)) candidates.resize(static_cast<size_t>(most));
  std::ranges::sort(candidates, {}, Order);
  std::vector<Seat> seats;
  int first_rank = 0;
  for (Candidate& c : candidates) {
    seats.push_back({.node = c.node,
                     .incarnation = c.incarnation,
                     .name = std::move(c.name),
                     .slots = c.slots,
                     .first_rank = first_rank});
    first_rank += c.slots;
  }
  return seats;
}

void DropDoubleClaims(std::vector<Candidate>& candidates) {
  std::ranges::sort(candidates, {}, Order);
  auto is_double = [](const Candidate& a, const Candidate& b) {
    return a.claimed_rank && a.claimed_rank == b.claimed_rank;
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), is_double), candidates.end());
}

int WorldSizeOf(const std::vector<Seat>& seats) {
  return seats.empty() ? 0 : seats.back().first_rank + seats.back().slots;
}

// FNV-1a: a check against mistakes, not against malice.
std::string DigestOf(int round, const std::vector<Seat>& seats) {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&hash](uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
  };
  add(static_cast<uint64_t>(round));
  for (const Seat& seat : seats) {
    add(seat.node);
    add(static_cast<uint64_t>(seat.incarnation));
    add(static_cast<uint64_t>(seat.slots));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace rankrun::agent
