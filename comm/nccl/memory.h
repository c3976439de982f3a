#pragma once

#include "comm/core/device_memory.h"

namespace rankrun::comm::nccl {

// Returns the functions for memory of CUDA's GPUs.
const DeviceMemory& MemoryOfGpus();

}  // namespace rankrun::comm::nccl
