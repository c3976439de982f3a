#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/machine/accelerators.h"
#include "launcher/plan/torch_devices.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Finds the GPUs of this machine that the job may use, by their names in their
// variable. Called only if the result matters, because it is slow.
using GpuFinder = std::function<Result<std::vector<std::string>>()>;

// Reads --gpus; returns nothing if it is not given. `all` finds the GPUs of the
// machine; if it fails, the entries are not checked against them.
// Errors: kInvalid for an entry that names no GPU or occurs twice, for an index
// beyond the GPUs of the machine, and if the machine has no GPU.
Result<std::optional<std::vector<std::string>>> ReadGpus(const Settings& settings,
                                                         const GpuFinder& all);

// Number of workers on this node.
struct WorkerCount {
  int workers;
  std::string why;  // "one for each of 4 GPUs that we may use"; empty: a number was typed
  std::string torch_type = {};  // of the devices that PyTorch found; empty: it was not asked
};

// Devices that the number of workers may depend on.
struct CountedDevices {
  std::optional<std::vector<std::string>> gpus_typed;
  agent::Accelerators accelerators = {};
  GpuFinder visible_gpus;
  std::function<Result<TorchDevices>()> ask_torch;
  std::optional<SourcedValue<int>> scheduler_gpus = {};  // number that the scheduler gives us
  int cpus;                                              // number in our affinity mask
  std::function<std::optional<int>()> cpu_limit = {};    // number by the container's limit
  bool one_by_default = false;  // the default is 1, as in torchrun, not the number of GPUs
};

// Reads --nproc-per-node. Asks PyTorch only for a word, and only if rankrun
// itself finds no device for it.
// Errors: kInvalid, and errors of `visible_gpus` and `ask_torch`.
Result<WorkerCount> ReadWorkerCount(const Settings& settings, const CountedDevices& devices);

}  // namespace rankrun::launcher
