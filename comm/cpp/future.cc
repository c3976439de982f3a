#include <vector>

#include <rankrun/future.h>

#include "base/mutex.h"
#include "comm/core/time_left.h"
#include "comm/core/wait_hook.h"

namespace rankrun::comm {

struct FutureEnd::State {
  mutable Mutex mutex;
  CondVar ended;
  bool is_done GUARDED_BY(mutex) = false;
  std::exception_ptr exception GUARDED_BY(mutex);
  std::vector<std::function<void()>> then GUARDED_BY(mutex);
};

FutureEnd::FutureEnd() : state_(std::make_unique<State>()) {}
FutureEnd::~FutureEnd() = default;

bool FutureEnd::Set(std::exception_ptr why, const std::function<void()>& write) {
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
  MutexLock lock(state_->mutex);
  return state_->is_done;
}

std::exception_ptr FutureEnd::exception() const {
  MutexLock lock(state_->mutex);
  return state_->exception;
}

void FutureEnd::Await() const {
  HookedWait hooked;
  MutexLock lock(state_->mutex);
  while (!state_->is_done) state_->ended.Wait(state_->mutex);
  if (state_->exception) std::rethrow_exception(state_->exception);
}

bool FutureEnd::AwaitFor(std::chrono::milliseconds limit) const {
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
