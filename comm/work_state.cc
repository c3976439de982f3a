#include "comm/work_state.h"

#include <utility>

namespace rankrun::comm {
namespace {

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
    std::lock_guard lock(mutex_);
    result_ = std::move(result);
    source_ = source;
    done_ = true;
    then.swap(then_);
  }
  ended_.notify_all();
  for (const auto& done : then) done();
}

bool WorkState::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

void WorkState::Await() const {
  const Attending here(attendance_.get());
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_; });
}

bool WorkState::AwaitFor(std::chrono::milliseconds limit) const {
  const Attending here(attendance_.get());
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, limit, [&] { return done_; });
}

int WorkState::source() const {
  std::lock_guard lock(mutex_);
  return source_;
}

void WorkState::Then(std::function<void()> done) {
  {
    std::lock_guard lock(mutex_);
    if (!done_) {
      then_.push_back(std::move(done));
      return;
    }
  }
  done();
}

}  // namespace rankrun::comm
