#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun::launcher {

// Accelerators that PyTorch uses.
struct TorchDevices {
  std::string type = {};  // "xpu"; empty: none
  int count = 0;

  bool operator==(const TorchDevices&) const = default;
};

// How long AskTorch waits.
struct TorchPatience {
  std::chrono::milliseconds limit = std::chrono::seconds(60);
  // When `stop_fd` can be read, `is_stopped` reads it and may end the wait.
  int stop_fd = -1;
  std::function<bool()> is_stopped = {};
};

// Asks the PyTorch of this Python for its accelerators, in an environment of
// "NAME=value" entries whose last entry of a name counts. There are none without
// PyTorch. Blocks.
// Errors: kTimeout, kCancelled, kSystem; those of SpawnProcess.
Result<TorchDevices> AskTorch(const std::string& python,
                              const std::vector<std::string>& environment,
                              const TorchPatience& patience = {});

}  // namespace rankrun::launcher
