#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rankrun {

// Facts about a DataParallel, with the names of PyTorch's log. Texts without a value are "N/A".
// Source: the DDP logging data of torch.distributed.
struct DataParallelLog {
  // Facts from the begin on. Sizes are in bytes.
  bool broadcast_buffers = false;  // there are buffers
  size_t bucket_cap_bytes = 0;
  bool find_unused_parameters = false;
  int64_t iteration = 0;  // steps before the last sample of the times below
  size_t num_parameter_tensors = 0;
  int rank = 0;  // in the group
  size_t total_parameter_size_bytes = 0;
  int world_size = 0;
  std::string backend_name = {};
  std::vector<size_t> bucket_sizes = {};  // in the order in which the buckets are reduced
  std::string dtypes = {};                // "float", "float, double"
  std::string gloo_socket_ifname = {};
  std::string master_addr = {};
  std::string master_port = {};
  std::string module_name = {};
  std::string torch_distributed_debug = {};  // OFF, INFO, DETAIL

  // Gradients that this rank did not mark ready in the last sampled step.
  size_t unused_parameter_size = 0;
  // Means over all samples, in nanoseconds. Backward pass: to FinishStep, from BeginBackward or
  // the first Ready. Overlap: the part of the communication that is within it.
  int64_t avg_forward_compute_time = 0;
  int64_t avg_backward_compute_time = 0;
  int64_t avg_backward_comm_time = 0;
  int64_t avg_backward_compute_comm_overlap_time = 0;
};

}  // namespace rankrun
