#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "base/result.h"
#include "comm/lazy_thread.h"

namespace rankrun::comm {

// A thread that carries out tasks one after the other. Started by the first.
// Thread: any.
class WorkQueue {
 public:
  using Task = std::function<void()>;

  ~WorkQueue() { Stop(); }

  // Errors: there is no thread to be had; then the task is dropped.
  Result<void> Push(Task task) {
    return thread_.Tell([&] {
      tasks_left_.fetch_add(1, std::memory_order_relaxed);
      tasks_.push_back(std::move(task));
    });
  }
  // Whether tasks are queued or one runs.
  bool busy() const { return tasks_left_.load(std::memory_order_acquire) > 0; }

  // Carries out what is queued, then ends the thread.
  void Stop() { thread_.Stop(); }

 private:
  void Run(LazyThread::Lock& lock) {
    while (thread_.Wait(lock, [this] { return !tasks_.empty(); })) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      tasks_left_.fetch_sub(1, std::memory_order_release);
      lock.lock();
    }
  }

  std::atomic<int> tasks_left_ = 0;
  std::deque<Task> tasks_;
  LazyThread thread_{[this](LazyThread::Lock& lock) { Run(lock); }};
};

}  // namespace rankrun::comm
