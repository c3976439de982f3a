#include <string>
#include <vector>

#include <rankrun/future.h>

#include "base/interruptible_call.h"
#include "base/mutex.h"
#include "comm/core/home_process.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/core/wait_hook.h"

namespace rankrun::comm {

struct FutureEnd::State {
  const HomeProcess home;
  mutable Mutex mutex;
  CondVar ended;
  bool is_done GUARDED_BY(mutex) = false;
  std::exception_ptr exception GUARDED_BY(mutex);
  std::vector<std::function<void()>> then GUARDED_BY(mutex);

  bool AwaitUntil(TimePoint deadline);
};

// Throws the exception of the end, or a DistNetworkError if the program interrupts its call.
bool FutureEnd::State::AwaitUntil(TimePoint deadline) {
  HookedWait hooked;
  MutexLock lock(mutex);
  while (!is_done && WaitUnlessInterrupted(ended, mutex, deadline)) {
  }
  if (exception) std::rethrow_exception(exception);
  if (!is_done && InterruptibleCall::WasInterrupted()) {
    Throw({ErrorCode::kCancelled,
           std::string("the wait for a Future was ") + InterruptibleCall::kText});
  }
  return is_done;
}

namespace {

// Throws in a fork of the process that made the future: the thread that would end it, or holds
// its mutex, is missing there.
void CheckHome(const HomeProcess& home, const char* call) {
  if (home.is_here()) return;
  Throw(home.ErrorOfFork("the process that made the future", "it")
            .In(std::string("Future::") + call));
}

}  // namespace

FutureEnd::FutureEnd() : state_(std::make_unique<State>()) {}
FutureEnd::~FutureEnd() = default;

bool FutureEnd::Set(std::exception_ptr why, const std::function<void()>& write) {
  if (!state_->home.is_here()) return false;  // also for a copy that a fork drops
  std::vector<std::function<void()>> then;
  {
    MutexLock lock(state_->mutex);
    if (state_->is_done) return false;
    write();
    state_->is_done = true;
    state_->exception = std::move(why);
    then.swap(state_->then);
  }
  state_->ended.NotifyAll();
  for (const auto& next : then) next();
  return true;
}

bool FutureEnd::done() const {
  CheckHome(state_->home, "done");
  MutexLock lock(state_->mutex);
  return state_->is_done;
}

std::exception_ptr FutureEnd::exception() const {
  CheckHome(state_->home, "exception");
  MutexLock lock(state_->mutex);
  return state_->exception;
}

void FutureEnd::Await() const {
  CheckHome(state_->home, "Wait");
  state_->AwaitUntil(TimePoint::max());
}

bool FutureEnd::AwaitFor(std::chrono::milliseconds limit) const {
  CheckHome(state_->home, "WaitFor");
  return state_->AwaitUntil(MonotonicClock().Now() + Bounded(limit));
}

void FutureEnd::Then(std::function<void()> next) {
  CheckHome(state_->home, "Then");
  {
    MutexLock lock(state_->mutex);
    if (!state_->is_done) {
      state_->then.push_back(std::move(next));
      return;
    }
  }
  next();
}

}  // namespace rankrun::comm
