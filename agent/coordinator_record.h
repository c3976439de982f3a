#pragma once

#include <optional>
#include <vector>

#include "agent/control_message.h"
#include "agent/restart_policy.h"
#include "agent/round.h"

namespace rankrun::agent {

// What a coordinator's next incarnation must know.
struct CoordinatorRecord {
  int round = 0;                    // the newest that any node was told of
  int attempts = 0;                 // rounds that were granted
  bool is_granted = false;          // that round was
  bool has_finished = false;        // its workers have all succeeded
  bool has_lost = false;            // a node, whose workers may live for the kill bound
  std::optional<Cause> cause = {};  // why it is being stopped
  RestartHistory history = {};
  std::vector<Seat> seats = {};  // of that round
  std::optional<Verdict> verdict = {};
  bool operator==(const CoordinatorRecord&) const = default;
};

}  // namespace rankrun::agent
