#pragma once

#include <functional>

#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `woken` on the loop's thread at least once after each batch of Wake
// calls. Thread: any for Wake; loop for construction and destruction.
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
