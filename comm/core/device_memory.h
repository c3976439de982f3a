#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace rankrun::comm {

// Functions for the memory of this process's GPUs, in a plug-in.
// Thread: any.
struct DeviceMemory {
  // Error: kInvalid, there is no GPU.
  Result<int> (*count)();
  Result<std::shared_ptr<void>> (*allocate)(int device, size_t bytes);
  // Copy after the work that is in `stream` now, and wait for that.
  Result<void> (*read)(int device, std::span<const std::byte> from, void* to, void* stream);
  Result<void> (*write)(int device, std::span<const std::byte> from, void* to, void* stream);
};

}  // namespace rankrun::comm
