#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/uv_signal.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Catches what the guardian forwards and who signals the agent itself may send.
// Thread: loop.
class SignalCatcher {
 public:
  struct Callbacks {
    std::function<void(int signal_number)> on_signal;
    std::function<void()> on_child;
  };

  // Then unblocks all signals: the guardian blocked them for both of us until
  // there were handlers. An inherited SIG_IGN stays.
  // Errors: kSystem.
  Result<void> Open(Loop& loop, const Callbacks& callbacks);

 private:
  Result<void> Catch(Loop& loop, int signal_number, std::function<void()> caught);

  std::vector<std::unique_ptr<Signal>> signals_;
};

}  // namespace rankrun::agent
