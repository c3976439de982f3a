#pragma once

#include <cuda_runtime_api.h>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/device_backend.h"
#include "comm/nccl/communicator.h"

namespace rankrun::comm::nccl {

// Returns why NCCL has no such collective: kInvalid. Pure.
Result<void> CheckSupport(const DeviceCall& call);

struct LaunchPlace {
  Communicator& communicator;
  int rank;  // of this process in it
  int world_size;
  cudaStream_t stream;
  TimePoint deadline;
};

// Enqueues a collective that CheckSupport permits, on the current GPU. Ranks take
// the same way for one collective, because it depends only on properties that they
// have in common: whether its blocks are of one size, not where they are.
// Errors: as Communicator::Launch; kSystem from CUDA.
Result<void> Launch(const DeviceCall& call, const LaunchPlace& place);

}  // namespace rankrun::comm::nccl
