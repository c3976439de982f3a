#include <string>
#include <vector>

#include <rankrun/future.h>

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
};

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
  HookedWait hooked;
  MutexLock lock(state_->mutex);
  while (!state_->is_done) state_->ended.Wait(state_->mutex);
  if (state_->exception) std::rethrow_exception(state_->exception);
}

bool FutureEnd::AwaitFor(std::chrono::milliseconds limit) const {
  CheckHome(state_->home, "WaitFor");
  HookedWait hooked;
  TimePoint deadline = MonotonicClock().Now() + Bounded(limit);
  MutexLock lock(state_->mutex);
  while (!state_->is_done) {
    bool is_late = !state_->ended.WaitUntil(state_->mutex, deadline);
    if (is_late && !state_->is_done) return false;
  }
  if (state_->exception) std::rethrow_exception(state_->exception);
  return true;
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
