#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::agent {

// Whether it is an index, GPU-<uuid> or MIG-<uuid>. Pure.
bool IsGpu(std::string_view entry);

// The GPUs that a list of CUDA_VISIBLE_DEVICES leaves, as CUDA reads it: up to
// the first entry that is no index, GPU-<uuid> or MIG-<uuid>; none if one is
// there twice. Pure.
std::vector<std::string> ParseVisibleDevices(std::string_view list);

// The GPUs that a program started here would see, without CUDA: those of
// `cuda_visible_devices` (empty: none; nothing: the variable is not set), else
// all that NVML or the driver's folder in `proc` counts: "0", "1", ... None
// where there is no driver.
// Errors: kSystem if a driver is there that does not answer.
Result<std::vector<std::string>> VisibleGpus(const std::optional<std::string>& cuda_visible_devices,
                                             const std::string& proc = "/proc");

// Of each of `gpus` the NUMA node that it is attached to, 0 where `sys` does
// not know. Empty where there is no driver.
// Errors: kInvalid for a GPU that does not exist, kSystem.
Result<std::vector<int>> GpuNumaNodes(const std::vector<std::string>& gpus,
                                      const std::string& proc = "/proc",
                                      const std::string& sys = "/sys");

}  // namespace rankrun::agent
