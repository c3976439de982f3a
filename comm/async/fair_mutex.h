#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rankrun::comm {

// Mutex that threads get in the order of their calls of Lock. A thread that
// locks it again and again therefore cannot starve the others.
// Thread: any.
class CAPABILITY("mutex") FairMutex {
 public:
  void Lock() ACQUIRE() { AwaitTurn(); }
  void Unlock() RELEASE() { EndTurn(); }

 private:
  void AwaitTurn() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    uint64_t ticket = next_++;
    while (ticket != served_) turn_.Wait(mutex_);
  }
  void EndTurn() EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      served_ += 1;
    }
    turn_.NotifyAll();
  }

  Mutex mutex_;
  CondVar turn_;
  uint64_t next_ GUARDED_BY(mutex_) = 0;    // the next ticket
  uint64_t served_ GUARDED_BY(mutex_) = 0;  // the ticket of the holder
};
using FairMutexLock = ScopedLock<FairMutex>;

}  // namespace rankrun::comm
