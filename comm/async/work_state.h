#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/async/attendance.h"
#include "comm/async/waiters.h"
#include "comm/async/work_queue.h"
#include "comm/core/device_backend.h"
#include "comm/core/home_process.h"
#include "comm/core/operation_events.h"

namespace rankrun::comm {

// State behind a public Work: the end of one operation, or of several.
// Thread: any.
// In a fork of the process that made it, only its destructor may be called.
class WorkState {
 public:
  // Threads that wait for the end enter `attendance`, unless it is null.
  explicit WorkState(std::shared_ptr<Attendance> attendance = nullptr)
      : attendance_(std::move(attendance)) {}
  ~WorkState();
  // Makes a state that ends with the last one of `parts`; its result is their first
  // error.
  static std::shared_ptr<WorkState> OfAll(const std::vector<std::shared_ptr<WorkState>>& parts);

  // Ends the operation, wakes the waiting threads and calls the functions of
  // Then. Called once. `source` is the sender's global rank, for receives only.
  void Finish(Result<void> result, int source = -1);

  const HomeProcess& home() const { return home_; }
  bool done() const;
  // Wait for the end; AwaitFor for at most `limit`, and returns done(). All start the
  // time-out of a message. Those that return a bool end early if the program interrupts
  // its call (base/interruptible_call.h).
  void Await();
  bool AwaitUnlessInterrupted();
  // As Await; but lets later work in `stream` wait for the operations of a device
  // instead. Returns the first error that is known.
  Result<void> AwaitIn(void* stream);
  bool AwaitFor(std::chrono::milliseconds limit);
  // Returns the time at which the first thread began to wait; no value: none has.
  std::optional<TimePoint> awaited_since() const;
  // After the end only; result_ does not change any more, so the analysis is
  // off.
  const Result<void>& result() const NO_THREAD_SAFETY_ANALYSIS { return result_; }
  int source() const;  // -1 before the end
  // Threads that wait for the end enter `waiters`. Before other threads have it.
  void SetWaiters(std::shared_ptr<Waiters> waiters) { waiters_ = std::move(waiters); }
  // Threads that wait for the end without a limit carry out the calls of `queue` up to this one
  // themselves. Before other threads have it. `are_interruptible`: also in a call that the hook
  // can end, which then may end with them (base/interruptible_call.h).
  void SetQueue(std::shared_ptr<WorkQueue> queue, bool are_interruptible) {
    queue_ = std::move(queue);
    are_interruptible_ = are_interruptible;
  }
  // Counts as a thread that waits until the end.
  void CountWaiter();
  // Makes this the state of an operation of a device. Before other threads have it.
  void SetDeviceWork(std::shared_ptr<DeviceWork> work) { device_work_ = std::move(work); }
  // Calls `done` after the end: in the thread that calls Finish, or at once.
  void Then(std::function<void()> done);

 private:
  bool is_of_device() const;
  void NoteWaiter();
  bool AwaitUntil(TimePoint deadline);
  void RunQueued();
  void NoteEnd(const Result<void>& part);
  std::vector<std::shared_ptr<WorkState>> Parts() const;  // those that still exist

  const HomeProcess home_;
  const std::shared_ptr<Attendance> attendance_;
  std::shared_ptr<Waiters> waiters_;  // null: the waits of a message, or of several operations
  std::shared_ptr<WorkQueue> queue_;  // null: of no queue
  bool are_interruptible_ = false;
  // Set before other threads have this object. Weak, because the parts hold
  // references to this object.
  std::vector<std::weak_ptr<WorkState>> parts_;
  std::shared_ptr<DeviceWork> device_work_;  // null: not of a device
  mutable Mutex mutex_;
  mutable CondVar ended_;
  bool done_ GUARDED_BY(mutex_) = false;
  std::optional<TimePoint> awaited_since_ GUARDED_BY(mutex_);
  int source_ GUARDED_BY(mutex_) = -1;
  Result<void> result_ GUARDED_BY(mutex_);
  Result<void> failed_part_ GUARDED_BY(mutex_);  // result of a part that has failed
  std::vector<std::function<void()>> then_ GUARDED_BY(mutex_);
};

// Ends the event with the state, or at once if the operation was not started.
inline void EndWith(OperationEvent event, const Result<std::shared_ptr<WorkState>>& state) {
  if (!event.has_end()) return;
  if (!state) return event.End(false);
  (*state)->Then([event, ended = state->get()] {
    event.End(static_cast<bool>(ended->result()), ended->source());
  });
}

}  // namespace rankrun::comm
