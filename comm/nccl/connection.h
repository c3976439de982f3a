#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/nccl/communicator.h"

namespace rankrun::comm::nccl {

// Communicator of a group or a lane, or none yet. Works keep it.
// Thread: any, one for Set.
class Connection {
 public:
  // Error: kCancelled, after BeginAbort.
  Result<void> Set(std::shared_ptr<Communicator> made) {
    {
      MutexLock lock(mutex_);
      communicator_.swap(made);
    }
    if (!aborted_.load()) return {};
    // Again, because BeginAbort has not seen the communicator.
    if (auto communicator = Get()) communicator->Abort();
    return Broken();
  }
  std::shared_ptr<Communicator> Get() {
    MutexLock lock(mutex_);
    return communicator_;
  }
  // As Communicator::BeginAbort; not valid() without a communicator.
  std::shared_future<void> BeginAbort() {
    aborted_.store(true);
    auto communicator = Get();
    return communicator == nullptr ? std::shared_future<void>() : communicator->BeginAbort();
  }
  const std::atomic<bool>& aborted() const { return aborted_; }
  // Returns the error of calls after BeginAbort.
  static Error Broken() {
    return {ErrorCode::kCancelled, "the process group was broken meanwhile"};
  }

 private:
  std::atomic<bool> aborted_ = false;
  Mutex mutex_;  // not held during a call of the communicator
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::nccl
