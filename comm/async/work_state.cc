#include "comm/async/work_state.h"

#include <utility>

namespace rankrun::comm {
namespace {

// Enters `attendance`, unless it is null, until the end of the scope.
class Attending {
 public:
  explicit Attending(Attendance* attendance) : attendance_(attendance) {
    if (attendance_ != nullptr) attendance_->Enter();
  }
  Attending(const Attending&) = delete;
  Attending& operator=(const Attending&) = delete;
  ~Attending() {
    if (attendance_ != nullptr) attendance_->Leave();
  }

 private:
  Attendance* const attendance_;
};

}  // namespace

void WorkState::Finish(Result<void> result, int source) {
  std::vector<std::function<void()>> then;
  {
    MutexLock lock(mutex_);
    result_ = std::move(result);
    source_ = source;
    done_ = true;
    then.swap(then_);
  }
  ended_.NotifyAll();
  for (const auto& done : then) done();
}

bool WorkState::done() const {
  MutexLock lock(mutex_);
  return done_;
}

void WorkState::Await() {
  Attending here(attendance_.get());
  MutexLock lock(mutex_);
  NoteWaiter();
  while (!done_) ended_.Wait(mutex_);
}

bool WorkState::AwaitFor(std::chrono::milliseconds limit) {
  Attending here(attendance_.get());
  TimePoint deadline = MonotonicClock().Now() + limit;
  MutexLock lock(mutex_);
  NoteWaiter();
  while (!done_ && ended_.WaitUntil(mutex_, deadline)) {
  }
  return done_;
}

void WorkState::NoteWaiter() {
  if (!awaited_since_) awaited_since_ = MonotonicClock().Now();
}

std::optional<TimePoint> WorkState::awaited_since() const {
  MutexLock lock(mutex_);
  return awaited_since_;
}

int WorkState::source() const {
  MutexLock lock(mutex_);
  return source_;
}

void WorkState::Then(std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    if (!done_) {
      then_.push_back(std::move(done));
      return;
    }
  }
  done();
}

}  // namespace rankrun::comm
