#pragma once

#include <optional>

namespace rankrun {

// A rank in the world process group.
struct GlobalRank {
  int value;
};

// A rank among the members of one process group.
struct GroupRank {
  int value;
};

// A member of a process group, by either number. In the world group the two
// are the same.
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

// Whom to receive from; nothing: from whoever sends first. (A message of this
// rank to itself only if it was sent before.)
using Source = std::optional<Peer>;

}  // namespace rankrun
