#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace rankrun::comm {

// Backends by device: "cpu", "cuda".
using DeviceMap = std::map<std::string, std::string>;

// Reads "shm", which is the backend for cpu, or "cpu:shm,cuda:nccl". Pure.
// Errors: kInvalid, for a text that is no such map, an unknown device, or a
// device that occurs twice.
// Source: torch.distributed's BackendConfig.
Result<DeviceMap> ParseDeviceMap(const std::string& text);

// Returns the backend for CPU memory.
// Errors: as ParseDeviceMap; kInvalid for a map that needs a backend for GPU
// memory, because there is none.
Result<std::string> CpuBackend(const std::string& text);

}  // namespace rankrun::comm
