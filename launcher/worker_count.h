#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/scheduler.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// The GPUs of this machine that the job may use, as CUDA_VISIBLE_DEVICES would
// name them; asked for only where they matter.
using GpuFinder = std::function<Result<std::vector<std::string>>()>;

// The entries of --gpus. Nothing: not given. `all` finds those of the machine;
// where it fails, what is typed is believed.
// Errors: kInvalid for an entry that is no GPU's name, for one that is there
// twice, for an index beyond those of `all`, and if there is no GPU.
Result<std::optional<std::vector<std::string>>> ReadGpus(const Settings& settings,
                                                         const GpuFinder& all);

struct WorkerCount {
  int workers;
  std::string why;  // "one for each of 4 visible GPUs"; empty: a number was typed
};

// What of the machine the number of workers depends on.
struct CountedDevices {
  std::optional<std::vector<std::string>> gpus_typed;
  GpuFinder visible_gpus;
  std::optional<Said<int>> gpus_said = {};  // by the scheduler
  int cpus;                                 // in our affinity mask
  bool one_by_default = false;              // as torchrun has it, instead of the number of GPUs
};

// Reads --nproc-per-node. Errors: kInvalid; those of the finder.
Result<WorkerCount> ReadWorkerCount(const Settings& settings, const CountedDevices& devices);

}  // namespace rankrun::launcher
