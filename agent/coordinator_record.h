#pragma once

#include <optional>
#include <vector>

#include "agent/control_message.h"
#include "agent/restart_policy.h"
#include "agent/round.h"

namespace rankrun::agent {

// What a coordinator's next incarnation must know.
struct CoordinatorRecord {
  int round = 0;              // the newest that any node was told of
  int attempts = 0;           // rounds that were granted
  bool is_granted = false;    // that round was
  bool has_finished = false;  // its workers have all succeeded
  RestartHistory history = {};
  std::vector<Seat> seats = {};  // of that round, while anything of it may run
  std::optional<Verdict> verdict = {};
  bool operator==(const CoordinatorRecord&) const = default;
};

}  // namespace rankrun::agent
