#include "comm/async/work_state.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/interruptible_call.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

TimePoint Now() { return MonotonicClock().Now(); }

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

Result<void> FirstError(const std::vector<Result<void>>& results) {
  for (const Result<void>& result : results) {
    if (!result) return result;
  }
  return {};
}

}  // namespace

// A fork keeps what may end something of its parent's: objects of a device, and objects
// that functions of Then hold.
WorkState::~WorkState() NO_THREAD_SAFETY_ANALYSIS {
  if (home_.is_here()) return;
  static_cast<void>(new std::shared_ptr<DeviceWork>(std::move(device_work_)));
  static_cast<void>(new std::vector<std::function<void()>>(std::move(then_)));
}

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

std::shared_ptr<WorkState> WorkState::OfAll(const std::vector<std::shared_ptr<WorkState>>& parts) {
  struct Ends {
    std::atomic<size_t> missing;
    std::vector<Result<void>> results;  // of the parts
  };
  auto all = std::make_shared<WorkState>();
  all->parts_.assign(parts.begin(), parts.end());
  auto ends = std::make_shared<Ends>();
  ends->missing = parts.size() + 1;  // one more, so that none ends it before the last Then
  ends->results.resize(parts.size());
  auto end_one = [all, ends] {
    if (ends->missing.fetch_sub(1) == 1) all->Finish(FirstError(ends->results));
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    // The part lives, because its own Finish, or this loop, makes the call.
    parts[i]->Then([i, all, ends, end_one, part = parts[i].get()] {
      ends->results[i] = part->result();
      all->NoteEnd(part->result());
      end_one();
    });
  }
  end_one();
  return all;
}

void WorkState::Await() {
  NoteWaiter();
  for (const auto& part : Parts()) part->Await();
  Attending here(attendance_.get());
  Waiters::Scope waiting(waiters_.get());
  RunQueued();
  MutexLock lock(mutex_);
  while (!done_) ended_.Wait(mutex_);
}

bool WorkState::AwaitUnlessInterrupted() {
  NoteWaiter();
  return AwaitUntil(TimePoint::max());
}

Result<void> WorkState::AwaitIn(void* stream) {
  if (!is_of_device() || done()) {
    if (AwaitUnlessInterrupted()) return result();
    return InterruptibleCall::Failure();
  }
  NoteWaiter();
  {
    MutexLock lock(mutex_);
    if (!failed_part_) return failed_part_;
  }
  if (device_work_ != nullptr) return device_work_->WaitIn(stream);
  Result<void> all;
  for (const auto& part : Parts()) {
    auto ok = part->AwaitIn(stream);
    if (all && !ok) all = std::move(ok);
  }
  return all;
}

bool WorkState::is_of_device() const {
  if (device_work_ != nullptr) return true;
  auto parts = Parts();
  return std::any_of(parts.begin(), parts.end(),
                     [](const auto& part) { return part->is_of_device(); });
}

bool WorkState::AwaitFor(milliseconds limit) {
  NoteWaiter();
  return AwaitUntil(Now() + limit);
}

// Counts as one wait, however often it asks whether it is interrupted.
bool WorkState::AwaitUntil(TimePoint deadline) {
  for (const auto& part : Parts()) {
    if (!part->AwaitUntil(deadline) && InterruptibleCall::IsInterrupted()) return false;
  }
  Attending here(attendance_.get());
  Waiters::Scope waiting(waiters_.get());
  if (deadline == TimePoint::max()) RunQueued();
  MutexLock lock(mutex_);
  while (!done_ && WaitUnlessInterrupted(ended_, mutex_, deadline)) {
  }
  return done_;
}

void WorkState::RunQueued() {
  if (queue_ == nullptr || (InterruptibleCall::IsUnderWay() && !are_interruptible_)) return;
  while (!done() && queue_->RunFirst()) {
  }
}

std::vector<std::shared_ptr<WorkState>> WorkState::Parts() const {
  std::vector<std::shared_ptr<WorkState>> alive;
  for (const auto& part : parts_) {
    if (auto state = part.lock()) alive.push_back(std::move(state));
  }
  return alive;
}

// Also of the parts, so that the time-outs of all messages begin together.
void WorkState::NoteWaiter() {
  for (const auto& part : Parts()) part->NoteWaiter();
  MutexLock lock(mutex_);
  if (!awaited_since_) awaited_since_ = Now();
}

void WorkState::NoteEnd(const Result<void>& part) {
  MutexLock lock(mutex_);
  if (failed_part_) failed_part_ = part;
}

std::optional<TimePoint> WorkState::awaited_since() const {
  MutexLock lock(mutex_);
  return awaited_since_;
}

void WorkState::CountWaiter() {
  for (const auto& part : Parts()) part->CountWaiter();
  if (waiters_ == nullptr) return;
  waiters_->Enter();
  Then([waiters = waiters_] { waiters->Leave(); });
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
