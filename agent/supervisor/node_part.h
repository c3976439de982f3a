#pragma once

#include <optional>

#include "agent/coordination/node_state.h"
#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// This node's part in an attempt.
struct NodePart {
  std::optional<Cause> failure = {};  // the first on this node, or its cause
  bool is_of_victim = false;          // `failure`, perhaps
  bool failure_is_told = false;       // to the coordinator
  // The attempt has ended, but the coordinator of this node alone has not decided yet.
  std::optional<AttemptRecord> undecided = {};
  std::optional<int> exit_code = {};  // of the job, if this is its last attempt
  // For several nodes:
  bool stopped_for_failure = false;  // on another node
  // The ends of workers that have all succeeded: the others may have needed them still.
  std::optional<AttemptRecord> success = {};
  bool report_shown = false;  // on the last attempt
};

}  // namespace rankrun::agent
