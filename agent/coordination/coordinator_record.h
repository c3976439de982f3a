#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/cause_history.h"
#include "agent/coordination/control_message.h"
#include "agent/coordination/round.h"
#include "agent/lifecycle/restart_policy.h"

namespace rankrun::agent {

// Decision after a round was stopped.
struct RoundOutcome {
  std::optional<int> rank = {};  // global rank of the worker that was the cause
  std::string cause = {};        // empty: no round was stopped yet
  bool restarts = false;
  bool is_free = false;     // the restart is not counted
  std::string reason = {};  // "at once", or why there is no restart
  int restart_number = 0;
  int exit_code = 0;            // if the job ends
  bool is_fatal = false;        // another attempt would not help
  int attempt = 0;              // that failed
  std::string cause_node = {};  // name of the node that failed; empty: unknown, or it is lost
  std::vector<FailureRow> earlier_failures = {};
  bool operator==(const RoundOutcome&) const = default;
};

// State of the coordinator that its next incarnation resumes from.
struct CoordinatorRecord {
  int round = 0;                    // the highest that was sent to any node
  int attempts = 0;                 // number of rounds that were started
  bool is_granted = false;          // `round` was started
  bool has_finished = false;        // all workers of `round` have succeeded
  bool has_lost = false;            // a node was lost; its workers may live for the kill bound
  std::optional<Cause> cause = {};  // why `round` is being stopped
  RoundOutcome outcome = {};        // of the last round that was stopped
  RestartHistory history = {};
  CauseHistory causes = {};
  std::vector<NodeAssignment> assignments = {};  // of `round`
  std::optional<Verdict> verdict = {};
  bool operator==(const CoordinatorRecord&) const = default;
};

}  // namespace rankrun::agent
