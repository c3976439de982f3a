#pragma once

#include <chrono>
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

// Asks the PyTorch of this Python for its accelerators, in an environment of
// "NAME=value" entries whose last entry of a name counts. There are none without
// PyTorch. Blocks for `patience` at most.
// Errors: kTimeout, kSystem; those of SpawnProcess.
Result<TorchDevices> AskTorch(const std::string& python,
                              const std::vector<std::string>& environment,
                              std::chrono::milliseconds patience = std::chrono::seconds(60));

}  // namespace rankrun::launcher
