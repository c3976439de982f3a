#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/mutex.h"

namespace rankrun::comm {

// Whether a process group is broken on this rank, and why.
// Thread: any.
class BrokenState {
 public:
  // Runs `end`, which ends all use of the backends, then is set with `reason`. Only the first
  // call has an effect; later calls return once it is done, because their callers may free
  // memory that the backends use until then. Returns whether this call was the first.
  bool Set(const std::string& reason, const std::function<void()>& end) EXCLUDES(end_mutex_) {
    MutexLock one_at_a_time(end_mutex_);
    if (is_set()) return false;
    end();
    MutexLock lock(mutex_);
    reason_ = reason;
    is_set_.store(true);
    return true;
  }
  bool is_set() const { return is_set_.load(); }
  std::string reason() const {  // empty unless is_set()
    MutexLock lock(mutex_);
    return reason_;
  }

  // Notes that the program ends the group, so that a call that has failed stops to look for
  // the cause.
  void NoteEnd() { is_ending_.store(true); }
  const std::atomic<bool>& is_ending() const { return is_ending_; }

 private:
  Mutex end_mutex_;
  mutable Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_);
  std::atomic<bool> is_set_ = false;
  std::atomic<bool> is_ending_ = false;
};

}  // namespace rankrun::comm
