#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/roster.h"
#include "agent/coordination/round.h"
#include "base/clock.h"

namespace rankrun::agent {

// Decides when the nodes that are there form a round. Pure.
class Gathering {
 public:
  explicit Gathering(const CoordinatorPolicy& policy) : policy_(policy) {}

  // `waits_for_newcomers`: fewer nodes than MAX wait for the last call.
  void Begin(bool waits_for_newcomers, TimePoint now);
  bool waits_for_newcomers() const { return waits_for_newcomers_; }
  // Forms no round before `time`: workers of a lost node may live until then.
  void WaitUntil(TimePoint time) { earliest_start_ = std::max(earliest_start_, time); }

  // Returns the nodes of the round to form now, or nothing.
  std::optional<std::vector<Candidate>> TryForm(const Roster& roster, TimePoint now);
  // Returns whether TryForm is due although no node has changed.
  bool IsDue(TimePoint now) const { return form_at_ && now >= *form_at_; }
  // Returns whether to send the roll call now, once per period.
  bool TakeRollCall(TimePoint now);
  TimePoint deadline() const;

 private:
  const CoordinatorPolicy policy_;
  bool waits_for_newcomers_ = true;
  TimePoint earliest_start_{};
  TimePoint next_roll_call_{};
  std::optional<TimePoint> form_at_;  // end of the last call, or earliest_start_
};

}  // namespace rankrun::agent
