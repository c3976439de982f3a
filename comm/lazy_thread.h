#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/start_thread.h"

namespace rankrun::comm {

// A thread that the first change of what it works on starts.
// Thread: any.  Lifetime: its owner calls Stop before what `run` uses goes.
class LazyThread {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // `run` is called in the thread, with the lock, and returns once Wait has said
  // that it is to.
  explicit LazyThread(std::function<void(Lock& lock)> run) : run_(std::move(run)) {}
  LazyThread(const LazyThread&) = delete;
  LazyThread& operator=(const LazyThread&) = delete;

  // Makes `change` under the lock, and tells the thread. Error: kExhausted, there
  // is none to be had; then nothing is changed.
  template <typename Change>
  Result<void> Tell(Change change) {
    {
      std::lock_guard lock(mutex_);
      if (!thread_.joinable() && !stopping_) {
        auto started = StartThread([this] {
          Lock of_the_thread(mutex_);
          run_(of_the_thread);
        });
        if (!started) return started.error();
        thread_ = *std::move(started);
      }
      change();
    }
    changed_.notify_one();
    return {};
  }

  // Of the thread: waits until there is something to do, or it is to end.
  // Returns whether there is.
  template <typename Due>
  bool Wait(Lock& lock, Due due) {
    changed_.wait(lock, [&] { return stopping_ || due(); });
    return due();
  }
  bool stopping() const { return stopping_; }  // with the lock

  // Ends the thread, and waits for that.
  void Stop() {
    std::thread ending;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      ending = std::move(thread_);
    }
    changed_.notify_one();
    if (ending.joinable()) ending.join();
  }

 private:
  const std::function<void(Lock&)> run_;
  std::mutex mutex_;  // guards the rest, and what the thread works on
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankrun::comm
