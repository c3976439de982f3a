#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/clock.h"

namespace rankrun::comm {

// How others tell a thread to look again.
class Wakeup {
 public:
  void Set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    condition_.notify_all();
  }

  // The same if the thread would else sleep past `until`: saves the system call.
  void SetIfAsleepAt(TimePoint until) {
    std::lock_guard lock(mutex_);
    if (sleeps_until_ && *sleeps_until_ <= until) return;
    set_ = true;
    condition_.notify_all();
  }

  // Returns after a Set since it last returned, or at `until`.
  void SleepUntil(TimePoint until) {
    std::unique_lock lock(mutex_);
    sleeps_until_ = until;
    const auto is_set = [this] { return set_; };
    if (until == TimePoint::max()) {
      condition_.wait(lock, is_set);  // no clock counts that far
    } else {
      condition_.wait_until(lock, until, is_set);
    }
    set_ = false;
    sleeps_until_.reset();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool set_ = false;
  std::optional<TimePoint> sleeps_until_;
};

}  // namespace rankrun::comm
