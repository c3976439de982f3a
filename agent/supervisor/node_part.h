#pragma once

#include <optional>

#include "agent/coordination/node_state.h"
#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// This node's part in an attempt of a job of several nodes.
struct NodePart {
  std::optional<Cause> failure = {};  // the first on this node
  bool stopped_for_failure = false;   // on another node
  // The ends of workers that have all succeeded: the others may have needed them still.
  std::optional<AttemptRecord> success = {};
  bool report_shown = false;  // on the last attempt
};

}  // namespace rankrun::agent
