#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rankrun::comm {

// A mutex that is given in the order in which it was asked for: who takes it
// again and again keeps nobody out.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [this, ticket = next_++] { return ticket == served_; });
  }
  void unlock() {
    {
      std::lock_guard lock(mutex_);
      served_ += 1;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards the rest
  std::condition_variable turn_;
  uint64_t next_ = 0;
  uint64_t served_ = 0;
};

}  // namespace rankrun::comm
