#pragma once

#include <optional>

namespace rankrun {

// Rank in the world process group.
struct GlobalRank {
  int value;
};

// Rank among the members of one process group.
struct GroupRank {
  int value;
};

// Member of a process group, named by either rank. In the world group both
// ranks are equal.
class Peer {
 public:
  constexpr Peer(GlobalRank rank) : global_(true), rank_(rank.value) {}
  constexpr Peer(GroupRank rank) : global_(false), rank_(rank.value) {}

  constexpr bool is_global() const { return global_; }
  constexpr int rank() const { return rank_; }

 private:
  bool global_;
  int rank_;
};

// Sender to receive from. No value: any member, the first message that arrives.
// A message of this rank to itself matches only if it was sent before.
using Source = std::optional<Peer>;

}  // namespace rankrun
