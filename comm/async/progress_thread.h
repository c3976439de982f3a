#pragma once

#include <functional>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/async/lazy_thread.h"

namespace rankrun::comm {

// Thread that calls `progress` while messages are under way. The first Wake
// starts it.
// Thread: any.
class ProgressThread {
 public:
  // `progress` advances the messages, waits briefly, and returns whether any
  // are left.
  explicit ProgressThread(std::function<bool()> progress) : progress_(std::move(progress)) {}
  ~ProgressThread() { Stop(); }

  // Makes the thread call `progress` again, after a message was started.
  // Error: kExhausted, the system has no thread left.
  Result<void> Wake() {
    {
      MutexLock lock(thread_.mutex());
      if (auto ok = thread_.Start(); !ok) return ok;
      awake_ = true;
    }
    thread_.Notify();
    return {};
  }
  // Ends the thread, even if messages are left.
  void Stop() { thread_.Stop(); }

 private:
  void Run() {
    MutexLock lock(thread_.mutex());
    for (;;) {
      while (!awake_ && !thread_.stopping()) thread_.Wait();
      if (thread_.stopping()) return thread_.SetEnded();
      awake_ = false;
      lock.Unlock();
      bool more = progress_();
      lock.Lock();
      awake_ = awake_ || more;
    }
  }

  const std::function<bool()> progress_;
  bool awake_ GUARDED_BY(thread_.mutex()) = false;
  LazyThread thread_{[this] { Run(); }};
};

}  // namespace rankrun::comm
