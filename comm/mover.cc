#include "comm/mover.h"

#include <utility>

#include "base/start_thread.h"

namespace rankrun::comm {

Result<void> Mover::Wake() {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() && !stopping_) {
      auto started = StartThread([this] { Run(); });
      if (!started) return started.error();
      thread_ = *std::move(started);
    }
    awake_ = true;
  }
  changed_.notify_one();
  return {};
}

void Mover::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  changed_.notify_one();
  if (ending.joinable()) ending.join();
}

void Mover::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || awake_; });
    if (stopping_) return;
    awake_ = false;
    lock.unlock();
    const bool more = progress_();
    lock.lock();
    awake_ = awake_ || more;
  }
}

}  // namespace rankrun::comm
