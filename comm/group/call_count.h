#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace rankrun::comm {

// Number of calls of the program that use a group, which must outlive them.
// Thread: any.
class CallCount {
 public:
  // Counts a call. It comes before the call's first use of the group, and ends after the last.
  class Scope {
   public:
    explicit Scope(CallCount& count) : number_(count.number_) {
      number_.fetch_add(1, std::memory_order_relaxed);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { number_.fetch_sub(1, std::memory_order_release); }

   private:
    std::atomic<int>& number_;
  };

  // Waits until no call is left. Looks again and again, because a call that woke this thread
  // would use the memory of a group that may be gone.
  void AwaitNone() const {
    constexpr std::chrono::milliseconds kPause{1};
    while (number_.load(std::memory_order_acquire) > 0) std::this_thread::sleep_for(kPause);
  }

 private:
  std::atomic<int> number_ = 0;
};

}  // namespace rankrun::comm
