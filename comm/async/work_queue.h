#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/async/lazy_thread.h"

namespace rankrun::comm {

// Thread that runs tasks one after the other. The first task starts it. A thread that waits for a
// task may run those before it, and that task itself.
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
  // Runs the first task in this thread. Returns false if there is none, or another thread runs one.
  bool RunFirst() {
    MutexLock lock(thread_.mutex());
    if (is_running_ || tasks_.empty()) return false;
    Task task = TakeFirst();
    lock.Unlock();
    CarryOut(std::move(task));
    lock.Lock();
    is_running_ = false;
    if (!tasks_.empty() || thread_.stopping()) thread_.Notify();
    return true;
  }
  // Returns whether a task is queued or running.
  bool busy() const { return tasks_left_.load(std::memory_order_acquire) > 0; }

  // Runs the queued tasks, then ends the thread.
  void Stop() { thread_.Stop(); }

 private:
  void Run() {
    MutexLock lock(thread_.mutex());
    for (;;) {
      while (is_running_ || (tasks_.empty() && !thread_.stopping())) thread_.Wait();
      if (tasks_.empty()) return thread_.SetEnded();
      Task task = TakeFirst();
      lock.Unlock();
      CarryOut(std::move(task));
      lock.Lock();
      is_running_ = false;
    }
  }

  Task TakeFirst() REQUIRES(thread_.mutex()) {
    is_running_ = true;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  void CarryOut(Task task) {
    task();
    task = nullptr;
    tasks_left_.fetch_sub(1, std::memory_order_release);
  }

  std::atomic<int> tasks_left_ = 0;
  std::deque<Task> tasks_ GUARDED_BY(thread_.mutex());
  bool is_running_ GUARDED_BY(thread_.mutex()) = false;
  LazyThread thread_{[this] { Run(); }};
};

}  // namespace rankrun::comm
