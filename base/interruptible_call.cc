#include "base/interruptible_call.h"

#include <atomic>

#include "base/mutex.h"

namespace rankrun {
namespace {

struct HookOfProcess {
  std::atomic<bool> is_set = false;  // so that a call without a hook takes no mutex
  Mutex mutex;
  InterruptHook hook GUARDED_BY(mutex) = nullptr;
  void* context GUARDED_BY(mutex) = nullptr;
};

HookOfProcess& OfProcess() {
  static auto& hook = *new HookOfProcess;  // never destroyed: threads may outlive main
  return hook;
}

thread_local InterruptibleCall* current = nullptr;
thread_local bool is_in_hook = false;
thread_local bool is_deferred = false;

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

void SetInterruptHook(InterruptHook hook, void* context) {
  HookOfProcess& process = OfProcess();
  MutexLock lock(process.mutex);
  process.hook = hook;
  process.context = context;
  process.is_set = hook != nullptr;
}

InterruptibleCall::InterruptibleCall() {
  HookOfProcess& process = OfProcess();
  if (!process.is_set || current != nullptr || is_in_hook) return;
  MutexLock lock(process.mutex);
  if (process.hook == nullptr) return;
  hook_ = process.hook;
  context_ = process.context;
  next_ = Now() + kPause;
  current = this;
}

InterruptibleCall::~InterruptibleCall() {
  if (current == this) current = nullptr;
}

bool InterruptibleCall::IsUnderWay() { return current != nullptr && !is_in_hook && !is_deferred; }

bool InterruptibleCall::IsInHook() { return is_in_hook; }

InterruptibleCall::Deferred::Deferred() { is_deferred = true; }
InterruptibleCall::Deferred::~Deferred() { is_deferred = false; }

void InterruptibleCall::ForgetParents() { current = nullptr; }

bool InterruptibleCall::IsInterrupted() {
  if (!IsUnderWay()) return false;
  InterruptibleCall& call = *current;
  if (call.interrupted_ || Now() < call.next_) return call.interrupted_;
  is_in_hook = true;
  call.interrupted_ = call.hook_(call.context_) != 0;
  is_in_hook = false;
  call.next_ = Now() + kPause;
  return call.interrupted_;
}

}  // namespace rankrun
