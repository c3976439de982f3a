#pragma once

#include <map>
#include <string>
#include <vector>

#include <rankrun/export.h>

namespace rankrun {

// Names of backends, as InitOptions::backend and ProcessGroup::backend() have them:
//   options.backend = rankrun::Backend::kGloo;
// RegisterBackend (distributed.h) adds names.
struct RANKRUN_API Backend {
  static constexpr char kAuto[] = "auto";  // of the first four, the one that fits the hosts
  static constexpr char kShm[] = "shm";
  static constexpr char kTcp[] = "tcp";
  static constexpr char kHierarchical[] = "hierarchical";
  static constexpr char kGloo[] = "gloo";
  static constexpr char kMpi[] = "mpi";
  static constexpr char kNccl[] = "nccl";

  // Returns the name in small letters: "gloo" for "GLOO". It need not be known.
  // Throws DistError if `text` is no name: it has letters, digits and _ only.
  static std::string Parse(const std::string& text);

  // Returns the names above and those that the program has registered, sorted.
  // BackendAvailable (distributed.h) says which of them Init can use.
  static std::vector<std::string> List();
};

// Returns the backend of each device, such as {cpu: shm, cuda: nccl} for
// "cpu:shm,cuda:nccl" and {cpu: auto, cuda: nccl} for "nccl".
// Throws DistError if `backend` is neither a name nor such a map.
// Source: torch.distributed's BackendConfig.
RANKRUN_API std::map<std::string, std::string> DeviceBackendMap(const std::string& backend);

// Returns the backend that a group uses for a device unless another is named: "auto"
// for "cpu", "nccl" for "cuda" and "cuda:1".
// Throws DistError for another device.
RANKRUN_API std::string DefaultBackendForDevice(const std::string& device);

// How a group uses NCCL; equal on all ranks. 0 leaves a number to NCCL.
// Source: ncclConfig_t in NCCL's user guide; ProcessGroupNCCL.Options of PyTorch.
struct NcclOptions {
  bool high_priority_stream = false;  // its kernels start before those of other streams
  int min_ctas = 0;                   // CUDA thread blocks that one call uses, at least
  int max_ctas = 0;                   // at most

  bool operator==(const NcclOptions&) const = default;
};

}  // namespace rankrun
