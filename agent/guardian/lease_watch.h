#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

// Lease of an agent: the deadline for its next message. Time in which the
// watcher itself was stopped (Ctrl-Z, a frozen container) does not count
// against the agent. Pure. Thread: one at a time.
class LeaseWatch {
 public:
  // From now on, at least one message must arrive in each `lease`.
  void Grant(std::chrono::milliseconds lease, TimePoint now);
  // A message has arrived, or the watcher knows that the agent was stopped
  // until now.
  void Renew(TimePoint now);
  // The watcher runs. Call it after each sleep and before the next.
  void OnRunning(TimePoint now);
  // The watcher sleeps, at most until `due`.
  void SleepUntil(std::optional<TimePoint> due) { due_ = due; }

  std::optional<TimePoint> deadline() const { return deadline_; }
  bool Expired(TimePoint now) const { return deadline_ && now >= *deadline_; }
  std::chrono::milliseconds lease() const { return lease_; }

 private:
  std::chrono::milliseconds lease_{0};
  std::optional<TimePoint> deadline_;  // empty: no lease was granted
  std::optional<TimePoint> due_;       // the watcher's next OnRunning; empty: at any time
};

}  // namespace rankrun::agent
