#pragma once

#include <optional>

#include "base/clock.h"
#include "base/mutex.h"

namespace rankrun::comm::gloo {

// Event that wakes one sleeping thread.
class WakeEvent {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    condition_.NotifyAll();
  }

  // As Set, but only if the thread would sleep past `until`; saves a system
  // call.
  void SetIfAsleepAt(TimePoint until) {
    MutexLock lock(mutex_);
    if (sleeps_until_ && *sleeps_until_ <= until) return;
    set_ = true;
    condition_.NotifyAll();
  }

  // Returns at `until`, or after a Set since the last return.
  void SleepUntil(TimePoint until) {
    MutexLock lock(mutex_);
    sleeps_until_ = until;
    if (until == TimePoint::max()) {
      while (!set_) condition_.Wait(mutex_);  // a clock conversion would overflow
    } else {
      while (!set_ && condition_.WaitUntil(mutex_, until)) {
      }
    }
    set_ = false;
    sleeps_until_.reset();
  }

 private:
  Mutex mutex_;
  CondVar condition_;
  bool set_ GUARDED_BY(mutex_) = false;
  std::optional<TimePoint> sleeps_until_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::gloo
