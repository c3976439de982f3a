#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/process/start_thread.h"

namespace rankrun::comm {

// Thread that starts when the first work for it arrives. Its owner keeps the
// work in fields that mutex() guards.
// Thread: any.  Lifetime: the owner calls Stop before it destroys anything that
// `run` uses.
class LazyThread {
 public:
  // `run` is called in the thread, without the mutex. It calls Wait while there
  // is no work; once stopping() holds, it calls SetEnded and returns.
  explicit LazyThread(std::function<void()> run) : run_(std::move(run)) {}
  LazyThread(const LazyThread&) = delete;
  LazyThread& operator=(const LazyThread&) = delete;

  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }

  // Starts the thread, unless it runs already.
  // Errors: kExhausted, the system has no thread left; kCancelled after Stop.
  Result<void> Start() REQUIRES(mutex_) {
    if (has_ended_) return Error{ErrorCode::kCancelled, "the process group is destroyed"};
    if (thread_.joinable() || stopping_) return {};
    auto started = StartThread(run_);
    if (!started) return started.error();
    thread_ = *std::move(started);
    return {};
  }

  // Ends a Wait of the thread, after the work has changed.
  void Notify() { changed_.NotifyOne(); }

  // For `run`. Wait may also return without Notify or Stop.
  void Wait() REQUIRES(mutex_) { changed_.Wait(mutex_); }
  bool stopping() const REQUIRES(mutex_) { return stopping_; }
  // For `run`, before it returns.
  void SetEnded() REQUIRES(mutex_) { has_ended_ = true; }

  // Ends the thread and joins it.
  void Stop() EXCLUDES(mutex_) {
    std::thread ending;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      ending = std::move(thread_);
    }
    changed_.NotifyOne();
    if (ending.joinable()) ending.join();
    MutexLock lock(mutex_);
    has_ended_ = true;
  }

 private:
  const std::function<void()> run_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool has_ended_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm
