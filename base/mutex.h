#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/fork_count.h"

// std::mutex and std::condition_variable with the annotations of clang's thread
// safety analysis. `clang++ -Wthread-safety` then rejects code that touches a
// GUARDED_BY field without its mutex. Everything is inline, so that a lock costs
// the same as one of std::mutex.
//
// The analysis does not know which mutexes a lambda runs under, so that no wait
// takes a predicate. Wait for a condition in a loop:
//   MutexLock lock(mutex_);
//   while (!done_) changed_.Wait(mutex_);
// Thread: any.
// Source: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html

#ifdef __clang__
#define RANKRUN_ATTRIBUTE(x) __attribute__((x))
#else
#define RANKRUN_ATTRIBUTE(x)  // gcc has no such analysis
#endif

// For a class: its objects are mutexes, or hold a mutex while they live.
#define CAPABILITY(name) RANKRUN_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY RANKRUN_ATTRIBUTE(scoped_lockable)

// For a field: only code that holds the mutex may use it. PT_GUARDED_BY: the same
// for the object behind a pointer.
#define GUARDED_BY(mutex) RANKRUN_ATTRIBUTE(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) RANKRUN_ATTRIBUTE(pt_guarded_by(mutex))

// For a function. REQUIRES: the caller holds the mutexes. EXCLUDES: the caller
// holds none of them. NO_THREAD_SAFETY_ANALYSIS needs a reason beside it.
#define REQUIRES(...) RANKRUN_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) RANKRUN_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) RANKRUN_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) RANKRUN_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) RANKRUN_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define RETURN_CAPABILITY(mutex) RANKRUN_ATTRIBUTE(lock_returned(mutex))
#define NO_THREAD_SAFETY_ANALYSIS RANKRUN_ATTRIBUTE(no_thread_safety_analysis)

namespace rankrun {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  // Returns whether it took the mutex.
  bool TryLock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;

  std::mutex mutex_;
};

// Holds a mutex until the end of the scope.
// Thread: one.
template <typename AnyMutex>
class SCOPED_CAPABILITY ScopedLock {
 public:
  explicit ScopedLock(AnyMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  // Adopts a mutex that the caller holds, after TryLock.
  ScopedLock(AnyMutex& mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock() RELEASE() {
    if (held_) mutex_.Unlock();
  }

  // Releases the mutex before the end of the scope, and takes it again.
  void Unlock() RELEASE() {
    mutex_.Unlock();
    held_ = false;
  }
  void Lock() ACQUIRE() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  AnyMutex& mutex_;
  bool held_ = true;
};
using MutexLock = ScopedLock<Mutex>;

// Releases a held mutex until the end of the scope.
// Thread: one.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.Unlock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;
  ~MutexUnlock() RELEASE() { mutex_.Lock(); }

 private:
  Mutex& mutex_;
};

// Condition variable. Its waits release the mutex meanwhile, and may return
// without a notification.
class CondVar {
 public:
  CondVar() : condition_() {}
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;
  // In a fork, glibc would wait for threads of the parent that wait here.
  ~CondVar() {
    if (forks_ == ForkCount()) condition_.~condition_variable();
  }

  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();  // the caller still holds it
  }
  // Returns false once `deadline` has passed.
  bool WaitUntil(Mutex& mutex, TimePoint deadline) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    std::cv_status status = condition_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  const uint32_t forks_ = ForkCount();
  union {
    std::condition_variable condition_;
  };
};

}  // namespace rankrun
