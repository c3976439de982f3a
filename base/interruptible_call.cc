#include "base/interruptible_call.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace rankrun {
namespace {

struct Hook {
  InterruptHook function;
  void* context;
};

// Calls that have begun with a hook keep it, and a fork may find the mutex locked; so a call only
// reads `current`, and no hook is ever freed.
struct Hooks {
  std::atomic<const Hook*> current = nullptr;
  Mutex mutex;
  std::vector<std::unique_ptr<const Hook>> all GUARDED_BY(mutex);
};

Hooks& OfProcess() {
  static auto& hooks = *new Hooks;  // never destroyed: threads may outlive main
  return hooks;
}

thread_local InterruptibleCall* current = nullptr;
thread_local bool is_in_hook = false;
thread_local bool is_deferred = false;

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

void SetInterruptHook(InterruptHook hook, void* context) {
  Hooks& hooks = OfProcess();
  if (hook == nullptr) {
    hooks.current = nullptr;
    return;
  }
  MutexLock lock(hooks.mutex);
  hooks.all.emplace_back(new Hook{hook, context});
  hooks.current = hooks.all.back().get();
}

InterruptibleCall::InterruptibleCall() {
  const Hook* hook = OfProcess().current;
  if (hook == nullptr || current != nullptr || is_in_hook) return;
  hook_ = hook->function;
  context_ = hook->context;
  next_ = Now() + kPause;
  current = this;
}

InterruptibleCall::~InterruptibleCall() {
  if (current == this) current = nullptr;
}

bool InterruptibleCall::IsUnderWay() { return current != nullptr && !is_in_hook && !is_deferred; }

TimePoint InterruptibleCall::NextLook(TimePoint deadline) {
  return IsUnderWay() ? std::min<TimePoint>(deadline, Now() + kPause) : deadline;
}

bool InterruptibleCall::WasInterrupted() { return current != nullptr && current->interrupted_; }

bool InterruptibleCall::IsInHook() { return is_in_hook; }

InterruptibleCall::Deferred::Deferred() { is_deferred = true; }
InterruptibleCall::Deferred::~Deferred() { is_deferred = false; }

void InterruptibleCall::ForgetParents() { current = nullptr; }

bool InterruptibleCall::IsInterrupted() {
  if (!IsUnderWay()) return false;
  InterruptibleCall& call = *current;
  if (call.interrupted_ || Now() < call.next_) return call.interrupted_;
  is_in_hook = true;
  call.interrupted_ = [&]() noexcept { return call.hook_(call.context_) != 0; }();
  is_in_hook = false;
  call.next_ = Now() + kPause;
  return call.interrupted_;
}

bool WaitUnlessInterrupted(CondVar& changed, Mutex& mutex, TimePoint deadline) {
  const TimePoint until = InterruptibleCall::NextLook(deadline);
  if (changed.WaitUntil(mutex, until)) return true;
  const MutexUnlock unlock(mutex);
  return !InterruptibleCall::IsInterrupted() && until != deadline;
}

}  // namespace rankrun
