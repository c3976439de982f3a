#pragma once

#include "base/mutex.h"
#include "base/status/activity.h"

namespace rankrun::comm {

// Counts the threads of the program that wait for collectives of a group which a thread of the
// library carries out, and shows on the status page whether there are any. The collectives end in
// their order, so that a thread which waits for one waits for that under way.
// Thread: any.
class Waiters {
 public:
  // `activity` outlives this object, or Detach is called before.
  explicit Waiters(Activity& activity) : activity_(&activity) {}

  void Enter() {
    MutexLock lock(mutex_);
    if (count_++ == 0 && activity_ != nullptr) activity_->ShowWaiting(true);
  }
  void Leave() {
    MutexLock lock(mutex_);
    if (--count_ == 0 && activity_ != nullptr) activity_->ShowWaiting(false);
  }
  void Detach() {
    MutexLock lock(mutex_);
    activity_ = nullptr;
  }

  // Counts a thread while it is in the scope.
  class Scope {
   public:
    explicit Scope(Waiters* waiters) : waiters_(waiters) {  // may be null
      if (waiters_ != nullptr) waiters_->Enter();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (waiters_ != nullptr) waiters_->Leave();
    }

   private:
    Waiters* const waiters_;
  };

 private:
  Mutex mutex_;
  Activity* activity_ GUARDED_BY(mutex_);
  int count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace rankrun::comm
