#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

// How long an agent that has promised to be heard may yet be silent. Time in
// which its watcher itself was stopped (Ctrl-Z, a frozen container) is not held
// against it. Pure. Thread: one at a time.
class LeaseWatch {
 public:
  // From now on it is to be heard at least once in `lease`.
  void Grant(std::chrono::milliseconds lease, TimePoint now);
  // It was heard, or the watcher knows that it was stopped until now.
  void Renew(TimePoint now);
  // The watcher sleeps no longer than until `due`, and has woken.
  void SleepUntil(TimePoint due) { due_ = due; }
  void Woke(TimePoint now);

  std::optional<TimePoint> deadline() const { return deadline_; }
  bool Expired(TimePoint now) const { return deadline_ && now >= *deadline_; }
  std::chrono::milliseconds lease() const { return lease_; }

 private:
  std::chrono::milliseconds lease_{0};
  std::optional<TimePoint> deadline_;  // nothing: no lease was granted
  std::optional<TimePoint> due_;
};

}  // namespace rankrun::agent
