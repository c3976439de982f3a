#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "comm/attendance.h"

namespace rankrun::comm {

// What is behind a public Work: the end of one operation, told once.
// Thread: any.
class WorkState {
 public:
  // Who waits for the end is noted in `attendance`, if there is one.
  explicit WorkState(std::shared_ptr<Attendance> attendance = nullptr)
      : attendance_(std::move(attendance)) {}

  // `source` is a global rank; of receives.
  void Finish(Result<void> result, int source = -1);

  bool done() const;
  void Await() const;
  bool AwaitFor(std::chrono::milliseconds limit) const;
  // After the end.
  const Result<void>& result() const { return result_; }
  int source() const;  // -1 before
  void Then(std::function<void()> done);

 private:
  const std::shared_ptr<Attendance> attendance_;
  mutable std::mutex mutex_;  // guards the rest
  mutable std::condition_variable ended_;
  bool done_ = false;
  int source_ = -1;
  Result<void> result_;  // never changed once done_
  std::vector<std::function<void()>> then_;
};

}  // namespace rankrun::comm
