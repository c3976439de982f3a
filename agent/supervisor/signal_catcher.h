#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/uv/uv_signal.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Catches SIGCHLD and the signals that the guardian forwards, because a process
// may also send these to the agent itself.
// Thread: loop.
class SignalCatcher {
 public:
  struct Callbacks {
    std::function<void(int signal_number)> on_signal;
    std::function<void()> on_child;
  };

  // Installs the handlers, then unblocks all signals. The guardian blocked them
  // for itself and the agent until there were handlers. An inherited SIG_IGN
  // stays.
  // Errors: kSystem.
  Result<void> Open(Loop& loop, const Callbacks& callbacks);

 private:
  Result<void> Catch(Loop& loop, int signal_number, std::function<void()> caught);

  std::vector<std::unique_ptr<Signal>> signals_;
};

}  // namespace rankrun::agent
