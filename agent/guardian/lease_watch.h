#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

// Lease of an agent: the deadline for its next message. If the watcher itself
// was stopped for half a lease (Ctrl-Z, a frozen container), the agent gets
// another lease, because it may have been stopped, too. Pure.
// Thread: one at a time.
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

  // Returns until when the watcher may sleep: not as long as the lease, so that it
  // notices that it was stopped.
  std::optional<TimePoint> NextLook(TimePoint now) const;

  std::optional<TimePoint> deadline() const { return deadline_; }
  bool Expired(TimePoint now) const { return deadline_ && now >= *deadline_; }
  std::chrono::milliseconds lease() const { return lease_; }

 private:
  std::chrono::milliseconds lease_{0};
  std::optional<TimePoint> deadline_;  // empty: no lease was granted
  std::optional<TimePoint> due_;       // of the next OnRunning, at most
};

}  // namespace rankrun::agent
