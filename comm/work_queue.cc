#include "comm/work_queue.h"

#include <system_error>
#include <utility>

#include "base/signals_blocked.h"

namespace rankrun::comm {

WorkQueue::WorkQueue(std::function<bool()> progress) : progress_(std::move(progress)) {}

Result<void> WorkQueue::Push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (auto ok = Start(); !ok) return ok;
    tasks_left_.fetch_add(1, std::memory_order_relaxed);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return {};
}

Result<void> WorkQueue::Wake() {
  {
    std::lock_guard lock(mutex_);
    if (auto ok = Start(); !ok) return ok;
    progressing_ = true;
  }
  changed_.notify_one();
  return {};
}

void WorkQueue::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  changed_.notify_one();
  if (ending.joinable()) ending.join();
}

Result<void> WorkQueue::Start() {
  if (thread_.joinable() || stopping_) return {};
  const SignalsBlocked in_the_thread;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return SystemError("start a thread", error.code().value());
  }
  return {};
}

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || progressing_ || !tasks_.empty(); });
    if (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      tasks_left_.fetch_sub(1, std::memory_order_release);
      lock.lock();
      continue;
    }
    if (stopping_) return;
    progressing_ = false;
    lock.unlock();
    const bool more = progress_();
    lock.lock();
    progressing_ = progressing_ || more;
  }
}

}  // namespace rankrun::comm
