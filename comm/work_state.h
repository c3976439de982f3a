#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "base/result.h"

namespace rankrun::comm {

// What is behind a public Work: the end of one operation, told once.
// Thread: any.
class WorkState {
 public:
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
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  int source_ = -1;
  Result<void> result_;  // never changed once done_
  std::vector<std::function<void()>> then_;
};

}  // namespace rankrun::comm
