#pragma once

#include <string>

#include <rankrun/backend_options.h>

#include "base/result.h"

namespace rankrun::comm {

// Backends of a process group by the memory that they move.
struct DeviceMap {
  std::string cpu;        // by which the ranks also compare calls on GPU memory
  std::string cuda = {};  // empty: the group has none

  bool operator==(const DeviceMap&) const = default;
};

// Reads a name, such as "shm", or a map, such as "cpu:shm,cuda:nccl". The name
// "nccl", and a map without cpu, leave the choice for cpu to "auto". Pure.
// Errors: kInvalid, for a text that is no such map, an unknown device, or a
// device that occurs twice.
// Source: torch.distributed's BackendConfig.
Result<DeviceMap> ParseDeviceMap(const std::string& text);

// Returns the backend for the memory of "cpu", "cuda" or "cuda:1". Pure.
// Error: kInvalid, there is no such device.
Result<std::string> DefaultBackendFor(const std::string& device);

// Returns "shm", or "cpu:shm,cuda:nccl".
std::string FormatDeviceMap(const DeviceMap& map);

// Wish for a group's backends, which all members have alike.
struct BackendWish {
  std::string name;  // "auto", a name or a map of devices
  NcclOptions nccl = {};
};

// Returns whether the name includes a backend for memory of GPUs. Pure.
bool HasGpus(const std::string& name);

// Fails for options of NCCL that no group can have, or not one of these backends.
// Error: kInvalid. Pure.
Result<void> CheckNcclOptions(const NcclOptions& options, const DeviceMap& map);

// Returns "backend shm" or "backend nccl with a high-priority stream and max_ctas 8".
std::string InWords(const BackendWish& wish);

}  // namespace rankrun::comm
