#pragma once

namespace rankrun {

// How a group uses NCCL; equal on all ranks. 0 leaves a number to NCCL.
// Source: ncclConfig_t in NCCL's user guide; ProcessGroupNCCL.Options of PyTorch.
struct NcclOptions {
  bool high_priority_stream = false;  // its kernels start before those of other streams
  int min_ctas = 0;                   // CUDA thread blocks that one call uses, at least
  int max_ctas = 0;                   // at most

  bool operator==(const NcclOptions&) const = default;
};

}  // namespace rankrun
