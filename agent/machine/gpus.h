#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::agent {

// Returns whether `entry` is an index, GPU-<uuid> or MIG-<uuid>. Pure.
bool IsGpu(std::string_view entry);

// Returns the GPUs of a CUDA_VISIBLE_DEVICES list as CUDA reads it: the entries
// before the first that is not an index, GPU-<uuid> or MIG-<uuid>. Returns none
// if an entry occurs twice. Pure.
std::vector<std::string> ParseVisibleDevices(std::string_view list);

// Returns the GPUs that a program started here would see, without CUDA. With
// `cuda_visible_devices` set, these are its entries (empty: none). Otherwise
// NVML or the driver's folder below `proc` counts them: "0", "1", ... Without a
// driver there are none.
// Errors: kSystem if a driver is present and does not answer.
Result<std::vector<std::string>> VisibleGpus(const std::optional<std::string>& cuda_visible_devices,
                                             const std::string& proc = "/proc");

// Returns the NUMA node of each of `gpus`; 0 if `sys` does not know it. Returns
// an empty list if there is no driver.
// Errors: kInvalid for a GPU that does not exist, kSystem.
Result<std::vector<int>> GpuNumaNodes(const std::vector<std::string>& gpus,
                                      const std::string& proc = "/proc",
                                      const std::string& sys = "/sys");

}  // namespace rankrun::agent
