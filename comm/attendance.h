#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace rankrun::comm {

// Who waits for messages under way. While somebody does, their mover waits for
// them, too; else it looks now and then, and is in nobody's way.
// Thread: any.
class Attendance {
 public:
  void Enter() {
    {
      std::lock_guard lock(mutex_);
      present_ += 1;
      entered_ += 1;
    }
    changed_.notify_all();
  }
  void Leave() {
    std::lock_guard lock(mutex_);
    present_ -= 1;
  }
  bool any() const {
    std::lock_guard lock(mutex_);
    return present_ > 0;
  }

  // Until somebody comes, and at most `limit`.
  void Nap(Duration limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [this, seen = entered_] { return entered_ != seen; });
  }

 private:
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  int present_ = 0;
  uint64_t entered_ = 0;
};

}  // namespace rankrun::comm
