#pragma once

#include <string>
#include <variant>
#include <vector>

namespace rankrun::agent {

// Messages about workers that wait for others. They are sent only after a worker has waited for a
// while, and do not change the membership.

// From a member: samples of its workers, encoded by health_codec.h.
struct NodeHealth {
  int round;
  std::string samples;
  bool operator==(const NodeHealth&) const = default;
};

// From a member: digests of the stacks of its workers, encoded by health_codec.h.
struct NodeStacks {
  int round;
  std::string digests;
  bool operator==(const NodeStacks&) const = default;
};

// From the coordinator: a worker waits somewhere, so send samples for some seconds.
struct HealthWanted {
  int round;
  bool operator==(const HealthWanted&) const = default;
};
// A worker that others wait for; shown to the user.
struct HangNotice {
  std::string text;
  bool operator==(const HangNotice&) const = default;
};
// The workers hang, and none is known to be the cause: send the stacks of all.
struct StacksWanted {
  int round;
  bool operator==(const StacksWanted&) const = default;
};
struct HungRank {
  int rank;         // global
  std::string why;  // it is a cause
  bool operator==(const HungRank&) const = default;
};
// The workers hang: the nodes of `ranks` are to report a failure. Without ranks, that of `reporter`
// is, which still has workers.
struct HangFound {
  int round;
  std::string text;
  std::vector<HungRank> ranks = {};
  int reporter = 0;  // global rank
  bool operator==(const HangFound&) const = default;
};

// Messages of the coordinator about hangs.
using HealthOrder = std::variant<HealthWanted, HangNotice, StacksWanted, HangFound>;

}  // namespace rankrun::agent
