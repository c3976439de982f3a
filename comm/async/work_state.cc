#include "comm/async/work_state.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

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

std::shared_ptr<WorkState> WorkState::OfAll(std::vector<std::shared_ptr<WorkState>> parts) {
  auto all = std::make_shared<WorkState>();
  all->parts_ = std::move(parts);
  // One more than the parts, so that none ends it before the last Then.
  auto left = std::make_shared<std::atomic<size_t>>(all->parts_.size() + 1);
  auto end_one = [all, left] {
    if (left->fetch_sub(1) == 1) all->Finish(all->FirstErrorOfParts());
  };
  for (const auto& part : all->parts_) part->Then(end_one);
  end_one();
  return all;
}

Result<void> WorkState::FirstErrorOfParts() const {
  for (const auto& part : parts_) {
    if (!part->result()) return part->result();
  }
  return {};
}

void WorkState::Await() {
  NoteWaiter();
  for (const auto& part : parts_) part->Await();
  Attending here(attendance_.get());
  MutexLock lock(mutex_);
  while (!done_) ended_.Wait(mutex_);
}

bool WorkState::AwaitFor(milliseconds limit) {
  NoteWaiter();
  TimePoint deadline = MonotonicClock().Now() + limit;
  for (const auto& part : parts_) {
    auto left = std::chrono::ceil<milliseconds>(deadline - MonotonicClock().Now());
    part->AwaitFor(std::max(left, milliseconds(0)));
  }
  Attending here(attendance_.get());
  MutexLock lock(mutex_);
  while (!done_ && ended_.WaitUntil(mutex_, deadline)) {
  }
  return done_;
}

// Also of the parts, so that the time-outs of all messages begin together.
void WorkState::NoteWaiter() {
  for (const auto& part : parts_) part->NoteWaiter();
  MutexLock lock(mutex_);
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
