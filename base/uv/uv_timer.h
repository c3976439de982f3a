#pragma once

#include <chrono>
#include <functional>

#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `fire` once, `delay` after Start.
// Thread: loop.  Lifetime: may not end inside its own callback.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> fire);
  Timer(const Timer&) = delete;  // libuv holds its address
  Timer& operator=(const Timer&) = delete;

  // Replaces a pending start. Rounds up to milliseconds, so `fire` is never
  // called early.
  void Start(std::chrono::nanoseconds delay);
  void Stop();  // `fire` is not called after this returns

 private:
  Loop& loop_;
  std::function<void()> fire_;
  UvHandle<uv_timer_s> handle_;
};

}  // namespace rankrun
