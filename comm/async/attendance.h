#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace rankrun::comm {

// Counts the threads that wait for messages under way. While at least one waits,
// the progress thread of the group waits inside the backend, too. Otherwise it
// only polls now and then, so that it delays no other thread.
// Thread: any.
class Attendance {
 public:
  void Enter() {
    {
      MutexLock lock(mutex_);
      present_ += 1;
      entered_ += 1;
    }
    changed_.NotifyAll();
  }
  void Leave() {
    MutexLock lock(mutex_);
    present_ -= 1;
  }
  bool any() const {
    MutexLock lock(mutex_);
    return present_ > 0;
  }

  // Returns when a thread enters, and after `limit` at the latest.
  void Nap(Duration limit) {
    TimePoint deadline = MonotonicClock().Now() + limit;
    MutexLock lock(mutex_);
    uint64_t seen = entered_;
    while (entered_ == seen && changed_.WaitUntil(mutex_, deadline)) {
    }
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int present_ GUARDED_BY(mutex_) = 0;
  uint64_t entered_ GUARDED_BY(mutex_) = 0;  // calls of Enter
};

}  // namespace rankrun::comm
