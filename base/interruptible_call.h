#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "base/private_api.h"
#include "base/result.h"

namespace rankrun {

// Returns a number other than 0 to end the waiting call of its thread. Throws nothing.
using InterruptHook = int (*)(void* context);

// Sets the hook of this process for the calls that begin later; null: none.
// Thread: any.
void SetInterruptHook(InterruptHook hook, void* context);

// A call of the program that the hook can end while it waits. A call within another one belongs to
// that. Without a hook it does nothing.
// Thread: that of the call.
class InterruptibleCall {
 public:
  RANKRUN_PRIVATE_API InterruptibleCall();
  InterruptibleCall(const InterruptibleCall&) = delete;
  InterruptibleCall& operator=(const InterruptibleCall&) = delete;
  RANKRUN_PRIVATE_API ~InterruptibleCall();

  // Returns whether this thread is in a call that the hook can end.
  RANKRUN_PRIVATE_API static bool IsUnderWay();
  // Returns when a wait of this thread until `deadline` must call IsInterrupted next.
  RANKRUN_PRIVATE_API static TimePoint NextLook(TimePoint deadline);
  // Returns whether the hook has ended the call of this thread, without asking it.
  RANKRUN_PRIVATE_API static bool WasInterrupted();
  // Returns whether this thread is in the hook.
  RANKRUN_PRIVATE_API static bool IsInHook();
  // Returns the error of a call that the hook has ended.
  static Error Failure() { return {ErrorCode::kCancelled, kText}; }
  // In a fork: the calls of this thread do not belong to its parent's.
  static void ForgetParents();
  // Returns whether the hook has ended the call of this thread. Asks it if kPause has passed since
  // it was asked, or since the call began.
  RANKRUN_PRIVATE_API static bool IsInterrupted();
  static constexpr std::chrono::milliseconds kPause{50};

  // The call of this thread cannot be interrupted in this scope. Not nested.
  class Deferred {
   public:
    RANKRUN_PRIVATE_API Deferred();
    Deferred(const Deferred&) = delete;
    Deferred& operator=(const Deferred&) = delete;
    RANKRUN_PRIVATE_API ~Deferred();
  };

  static constexpr const char* kText = "interrupted by the program";

 private:
  InterruptHook hook_ = nullptr;  // null: this is not the outermost call, or there is no hook
  void* context_ = nullptr;
  TimePoint next_{};  // when the hook is asked
  bool interrupted_ = false;
};

// Waits until `changed` is notified, or until the next look of the call of this thread. Returns
// false if the deadline has passed or the hook has ended the call; it is asked without the mutex,
// so look at the condition once more then:
//   while (!done_ && WaitUnlessInterrupted(changed_, mutex_, deadline)) {
//   }
//   return done_;
RANKRUN_PRIVATE_API bool WaitUnlessInterrupted(CondVar& changed, Mutex& mutex, TimePoint deadline)
    REQUIRES(mutex);

}  // namespace rankrun
