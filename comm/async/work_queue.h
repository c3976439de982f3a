#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/async/lazy_thread.h"

namespace rankrun::comm {

// Thread that runs tasks one after the other. The first task starts it.
// Thread: any.
class WorkQueue {
 public:
  using Task = std::function<void()>;

  ~WorkQueue() { Stop(); }

  // Error: kExhausted, the system has no thread left; the task is dropped.
  Result<void> Push(Task task) {
    {
      MutexLock lock(thread_.mutex());
      if (auto ok = thread_.Start(); !ok) return ok;
      tasks_left_.fetch_add(1, std::memory_order_relaxed);
      tasks_.push_back(std::move(task));
    }
    thread_.Notify();
    return {};
  }
  // Returns whether a task is queued or running.
  bool busy() const { return tasks_left_.load(std::memory_order_acquire) > 0; }

  // Runs the queued tasks, then ends the thread.
  void Stop() { thread_.Stop(); }

 private:
  void Run() {
    MutexLock lock(thread_.mutex());
    for (;;) {
      while (tasks_.empty() && !thread_.stopping()) thread_.Wait();
      if (tasks_.empty()) return thread_.SetEnded();
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      task();
      tasks_left_.fetch_sub(1, std::memory_order_release);
      lock.Lock();
    }
  }

  std::atomic<int> tasks_left_ = 0;
  std::deque<Task> tasks_ GUARDED_BY(thread_.mutex());
  LazyThread thread_{[this] { Run(); }};
};

}  // namespace rankrun::comm
