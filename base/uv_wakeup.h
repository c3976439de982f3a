#pragma once

#include <functional>

#include "base/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `woken` on the loop's thread, at least once after each batch of Wake
// calls. Thread: Wake any; construction and destruction loop.
class Wakeup {
 public:
  Wakeup(Loop& loop, std::function<void()> woken);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void Wake();

 private:
  std::function<void()> woken_;
  UvHandle<uv_async_s> handle_;
};

}  // namespace rankrun
