#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/settings.h"

namespace rankrun::launcher {

// The GPUs of this machine that the job may use, as CUDA_VISIBLE_DEVICES would
// name them; asked for only where they matter.
using GpuFinder = std::function<Result<std::vector<std::string>>()>;

// The entries of --gpus. Nothing: not given.
// Errors: kInvalid for an empty entry, and for one that is there twice.
Result<std::optional<std::vector<std::string>>> ReadGpus(const Settings& settings);

struct WorkerCount {
  int workers;
  std::string why;  // "one for each of 4 visible GPUs"; empty: a number was typed
};

// What of the machine the number of workers depends on.
struct CountedDevices {
  std::optional<std::vector<std::string>> gpus_typed;
  GpuFinder visible_gpus;
  int cpus;                     // in our affinity mask
  bool one_by_default = false;  // as torchrun has it, instead of the number of GPUs
};

// Reads --nproc-per-node. Errors: kInvalid; those of the finder.
Result<WorkerCount> ReadWorkerCount(const Settings& settings, const CountedDevices& devices);

}  // namespace rankrun::launcher
