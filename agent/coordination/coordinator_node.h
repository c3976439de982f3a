#pragma once

#include <cstdint>
#include <optional>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/hello.h"
#include "base/clock.h"

namespace rankrun::agent {

// State of a node that is connected, or that was and may reconnect.
struct CoordinatorNode {
  Hello hello;
  std::optional<PeerId> peer;         // empty: the connection is broken
  TimePoint last_heard;               // time of its last message
  TimePoint broken{};                 // when its latest connection broke
  uint64_t arrival = 0;               // position in the order of first hellos
  std::optional<int> previous_rank;   // node rank in the previous round
  NodeState work = NodeState::kNone;  // what may run there
  bool is_leaving = false;
  int replaced_after = 0;  // failures in a row after which a spare took its place; 0: none did
  std::optional<TimePoint> answer_deadline;  // then the node is given up
};

}  // namespace rankrun::agent
