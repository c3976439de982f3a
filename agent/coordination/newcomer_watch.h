#pragma once

#include <optional>
#include <string>

#include "agent/coordination/roster.h"
#include "agent/coordination/round_in_progress.h"
#include "base/clock.h"

namespace rankrun::agent {

// Returns whether the node is in no round and may take part in the next one. Pure.
bool IsIdle(const Roster::Node& node, const Roster& roster, const RoundInProgress& round);

// Decides when a running round is stopped for a larger one. Pure.
class NewcomerWatch {
 public:
  // `last_call`: time for further nodes to join, unless the job is full.
  NewcomerWatch(int max_nodes, Duration last_call) : max_nodes_(max_nodes), last_call_(last_call) {}

  void Reset() { regroup_at_.reset(); }
  // Returns the name of a free node to stop the round for, or nothing.
  std::optional<std::string> Look(const Roster& roster, const RoundInProgress& round,
                                  TimePoint now);
  // Time at which Look is due although no node has changed.
  std::optional<TimePoint> deadline() const { return regroup_at_; }

 private:
  const int max_nodes_;
  const Duration last_call_;
  std::optional<TimePoint> regroup_at_;
};

}  // namespace rankrun::agent
