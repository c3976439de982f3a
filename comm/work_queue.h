#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace rankrun::comm {

// The thread of a process group: carries out tasks one after the other, and
// between them what has to go on by itself. Started by the first use.
// Thread: any.
class WorkQueue {
 public:
  // `progress` does a little, waits a little at most, and says whether there
  // is more to do. It is not called while a task runs.
  explicit WorkQueue(std::function<bool()> progress);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { Stop(); }

  // Errors: there is no thread to be had; then the task is dropped.
  Result<void> Push(std::function<void()> task);
  // There is something for `progress`. Error: kExhausted, there is no thread.
  Result<void> Wake();
  // Whether tasks are queued or one runs.
  bool busy() const { return tasks_left_.load(std::memory_order_acquire) > 0; }

  // Carries out what is queued, then ends the thread.
  void Stop();

 private:
  Result<void> Start();
  void Run();

  const std::function<bool()> progress_;
  std::atomic<int> tasks_left_ = 0;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool progressing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankrun::comm
