#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/wait_hook.h"
#include "comm/rpc/poll_right.h"

struct epoll_event;

namespace rankrun::comm::rpc {

// Work of a user: it may wait for anything, also for other calls.
using Task = std::function<void()>;

// Descriptor that the threads poll, with what belongs to it.
class Source {
 public:
  virtual ~Source() = default;
  virtual int fd() const = 0;
  // Moves what can be moved without waiting, and appends the tasks that follow. Returns
  // whether anything has moved. Thread: the one that polls.
  virtual bool Move(std::vector<Task>& tasks) = 0;
};

// Threads of RPC. One thread at a time polls the sources; the others carry out tasks, or
// rest. A task that arrives alone is carried out by the polling thread itself, which saves
// a switch between threads in each call; if it takes long, another thread begins to poll.
// A thread of the user that waits for a reply polls itself, too, but carries out no tasks.
// Thread: any.
class Threads {
 public:
  // At most `max_tasks` tasks run at once, without those that wait (Await, WaitHook).
  // Threads start when they are needed. Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<Threads>> Make(int max_tasks);
  // Waits for the tasks that are queued or running.
  ~Threads();

  // Polls a source until Remove. Errors: kExhausted, kSystem.
  Result<void> Add(std::shared_ptr<Source> source) EXCLUDES(mutex_);
  // Move may still be called for a moment. `source` was added.
  void Remove(const Source& source) EXCLUDES(mutex_);
  // Lets Move be called also when the descriptor is writable. Returns false if the source is
  // not added.
  bool SetWritable(const Source& source, bool is_wanted);

  void Run(Task task) EXCLUDES(mutex_);
  // Waits until `is_over`, or the deadline. Returns is_over(). `expected`: the source that
  // will probably end the wait; may be null. A thread that makes `is_over` true calls
  // NotifyWaiters after it.
  bool Await(const std::function<bool()>& is_over, Source* expected, TimePoint deadline)
      EXCLUDES(mutex_);
  void NotifyWaiters() EXCLUDES(mutex_);

  int size() const EXCLUDES(mutex_);     // threads that have started
  int resting() const EXCLUDES(mutex_);  // of these

 private:
  using Ticket = PollRight::Ticket;

  // Lets another task run while a task waits.
  class TaskWait final : public WaitHook {
   public:
    explicit TaskWait(Threads& threads) : threads_(threads) {}
    void BeginWait() override;
    void EndWait() override;

   private:
    Threads& threads_;
    int depth_ = 0;
  };

  Threads(int max_tasks, Fd epoll, Fd wake)
      : max_tasks_(max_tasks), epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  void Work() EXCLUDES(mutex_);
  void Rest(MutexLock& lock) REQUIRES(mutex_);
  bool MayRunTask() const REQUIRES(mutex_) { return running_ < max_tasks_ + waiting_tasks_; }
  bool TryBeginTask() EXCLUDES(mutex_);
  void EndTask() EXCLUDES(mutex_);
  Result<void> WakeOrStartThread() REQUIRES(mutex_);

  void PollForTasks() EXCLUDES(mutex_);
  bool PollUntil(const std::function<bool()>& is_over, Source* expected, TimePoint deadline)
      EXCLUDES(mutex_);
  bool PollOnce(Source* expected, int timeout_ms, std::vector<Task>& tasks) EXCLUDES(mutex_);
  int Sleep(epoll_event* events, int size, int timeout_ms);
  void ForgetRemoved() EXCLUDES(mutex_);
  std::optional<Ticket> TakeSoon(const std::function<bool()>& is_over);
  void RestUntilNotified(const std::function<bool()>& is_over) EXCLUDES(mutex_);
  void Wake();

  void ArmWatch() EXCLUDES(mutex_);
  void AwaitArmed() EXCLUDES(mutex_);
  void Watch() EXCLUDES(mutex_);

  const int max_tasks_;
  const Fd epoll_;
  const Fd wake_;  // eventfd

  PollRight right_;
  std::atomic<bool> pool_polls_ = false;  // a thread that carries out tasks has the right
  std::atomic<int> wanted_ = 0;           // threads of users that want to poll
  std::atomic<bool> sleeps_ = false;      // the polling thread waits in epoll_wait
  std::atomic<bool> has_removed_ = false;
  std::atomic<bool> watch_is_armed_ = false;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int> waiters_ = 0;  // in a wait for waiters_changed_

  mutable Mutex mutex_;
  CondVar changed_;          // for threads that rest
  CondVar waiters_changed_;  // for threads of users in Await
  CondVar watch_changed_;
  std::deque<Task> queue_ GUARDED_BY(mutex_);
  bool needs_poller_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  int resting_ GUARDED_BY(mutex_) = 0;        // without those that are woken
  int woken_ GUARDED_BY(mutex_) = 0;          // to leave their rest
  int running_ GUARDED_BY(mutex_) = 0;        // tasks
  int waiting_tasks_ GUARDED_BY(mutex_) = 0;  // of these
  std::thread watch_;
  std::vector<std::shared_ptr<Source>> sources_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Source>> removed_ GUARDED_BY(mutex_);  // perhaps in use still

  // The thread that polls uses these.
  Source* hot_ = nullptr;  // had data last
  int rounds_ = 1;         // looks at one source, between two looks at all
  int rounds_left_ = 0;    // of these
};

}  // namespace rankrun::comm::rpc
