#include "comm/work_queue.h"

#include <signal.h>

#include <utility>

namespace rankrun::comm {

WorkQueue::WorkQueue(std::function<bool()> progress) : progress_(std::move(progress)) {}

void WorkQueue::Push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_left_.fetch_add(1, std::memory_order_relaxed);
    tasks_.push_back(std::move(task));
    Start();
  }
  changed_.notify_one();
}

void WorkQueue::Wake() {
  {
    std::lock_guard lock(mutex_);
    progressing_ = true;
    Start();
  }
  changed_.notify_one();
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

// The program's signals are not for this thread.
void WorkQueue::Start() {
  if (thread_.joinable() || stopping_) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
