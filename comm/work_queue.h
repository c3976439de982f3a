#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace rankrun::comm {

// A thread that carries out tasks one after the other. Started by the first.
// Thread: any.
class WorkQueue {
 public:
  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { Stop(); }

  // Errors: there is no thread to be had; then the task is dropped.
  Result<void> Push(std::function<void()> task);
  // Whether tasks are queued or one runs.
  bool busy() const { return tasks_left_.load(std::memory_order_acquire) > 0; }

  // Carries out what is queued, then ends the thread.
  void Stop();

 private:
  void Run();

  std::atomic<int> tasks_left_ = 0;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankrun::comm
