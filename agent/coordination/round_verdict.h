#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/node_state.h"
#include "agent/lifecycle/restart_policy.h"
#include "base/clock.h"

namespace rankrun::agent {

// Why a round is being stopped, and how the job continues once nothing of the round is left. Pure.
class RoundVerdict {
 public:
  struct Round {
    bool was_started = false;  // its workers may have run
    Duration lasted{};
    TimePoint stopped{};                       // when the stop began
    std::optional<uint64_t> failed_node = {};  // the node of the worker that failed
  };

  RoundVerdict(const Cause& cause, const Round& round) : cause_(AsFailure(cause)), round_(round) {}

  const Cause& cause() const { return cause_; }

  // Prefers a primary failure over a lost-peer error.
  void ReplaceIfBetter(const Cause& cause);
  // Replaces a worker's failure by the loss of another node or agent, of which nothing is heard
  // since `since`, if both are of the same time: workers notice a lost peer earlier than agents
  // do, and not all say so. Returns whether it did; else the loss replaces a lost-peer error.
  bool PreferLoss(uint64_t node, TimePoint since, const Cause& loss);
  // Ends the job with the cause, unless another one does so already. Returns whether it does.
  bool EndWith(const Cause& cause);

  // Records a node that is lost during the stop. Returns whether that ends the job.
  bool RecordLoss(const Cause& loss);

  // Records the attempt and the node that failed, for the report. `node`: name; empty: unknown, or
  // it is lost.
  void NoteNode(int attempt, const std::string& node, const std::vector<FailureRow>& earlier);

  // Returns the outcome of a job that ends here.
  RoundOutcome EndOfJob() const;

  struct Next {
    RoundOutcome outcome;
    std::optional<RestartHistory> history;  // set if the attempt counts as a failed one
    Duration pause{};                       // before a restart
  };
  // Decides whether the workers start again, for a cause that is not fatal.
  Next Decide(const RestartPolicy& policy, const RestartHistory& history) const;

 private:
  std::string WithLosses(const std::string& reason) const;

  Cause cause_;
  Round round_;
  std::string losses_;  // text on nodes lost during the stop
  int attempt_ = 0;
  std::string cause_node_;
  std::vector<FailureRow> earlier_failures_;
};

}  // namespace rankrun::agent
