#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordinator_events.h"
#include "agent/hello.h"
#include "base/clock.h"

namespace rankrun::agent {

// What the coordinator knows of a node that is here, or was and may come back.
struct CoordinatorNode {
  Hello hello;
  std::optional<PeerId> peer;  // nothing: the connection is broken
  TimePoint heard;             // the last time
  uint64_t arrival = 0;
  std::optional<int> seat;     // its rank in the round
  std::optional<int> earlier;  // in the one before
  Work work = Work::kNone;     // what may be there
  bool is_awaited = false;     // its answer to what this phase wants
  bool is_leaving = false;
  std::optional<TimePoint> answer_by;          // else it is given up
  std::optional<std::vector<int>> unfinished;  // local ranks; nothing: all
  std::vector<std::string> own_addresses;      // as it prepared
};

}  // namespace rankrun::agent
