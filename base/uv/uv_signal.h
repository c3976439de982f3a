#pragma once

#include <functional>

#include "base/result.h"
#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `caught` for each delivery of a signal to this process while it lives;
// several deliveries close together may be one call. Thread: loop.
class Signal {
 public:
  static Result<std::unique_ptr<Signal>> Catch(Loop& loop, int signal_number,
                                               std::function<void()> caught);
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

 private:
  explicit Signal(std::function<void()> caught);

  std::function<void()> caught_;
  UvHandle<uv_signal_s> handle_;
};

}  // namespace rankrun
