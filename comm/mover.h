#pragma once

#include <functional>
#include <utility>

#include "base/result.h"
#include "comm/lazy_thread.h"

namespace rankrun::comm {

// A thread that calls `progress` while there is something to move on. Started
// by the first Wake.
// Thread: any.
class Mover {
 public:
  // `progress` does a little, waits a little at most, and says whether there is
  // more to do.
  explicit Mover(std::function<bool()> progress) : progress_(std::move(progress)) {}
  ~Mover() { Stop(); }

  // There is something to move on. Error: kExhausted, there is no thread.
  Result<void> Wake() {
    return thread_.Tell([this] { awake_ = true; });
  }
  // Ends the thread, whatever there is.
  void Stop() { thread_.Stop(); }

 private:
  void Run(LazyThread::Lock& lock) {
    while (thread_.Wait(lock, [this] { return awake_; }) && !thread_.stopping()) {
      awake_ = false;
      lock.unlock();
      const bool more = progress_();
      lock.lock();
      awake_ = awake_ || more;
    }
  }

  const std::function<bool()> progress_;
  bool awake_ = false;
  LazyThread thread_{[this](LazyThread::Lock& lock) { Run(lock); }};
};

}  // namespace rankrun::comm
