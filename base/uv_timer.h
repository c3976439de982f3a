#pragma once

#include <chrono>
#include <functional>

#include "base/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `fire` once, `delay` after Start.
// Thread: loop.  Lifetime: may not end inside its own callback.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> fire);
  Timer(const Timer&) = delete;  // libuv holds our address
  Timer& operator=(const Timer&) = delete;

  // Replaces a pending start. A part of a millisecond counts as a whole one,
  // so `fire` never comes early.
  void Start(std::chrono::nanoseconds delay);
  void Stop();  // no call after this returns

 private:
  Loop& loop_;
  std::function<void()> fire_;
  UvHandle<uv_timer_s> handle_;
};

}  // namespace rankrun
