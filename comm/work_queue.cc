#include "comm/work_queue.h"

#include <utility>

#include "base/start_thread.h"

namespace rankrun::comm {

Result<void> WorkQueue::Push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() && !stopping_) {
      auto started = StartThread([this] { Run(); });
      if (!started) return started.error();
      thread_ = *std::move(started);
    }
    tasks_left_.fetch_add(1, std::memory_order_relaxed);
    tasks_.push_back(std::move(task));
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

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    tasks_left_.fetch_sub(1, std::memory_order_release);
    lock.lock();
  }
}

}  // namespace rankrun::comm
