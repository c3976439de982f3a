#pragma once

#include <map>
#include <string>
#include <vector>

#include <rankrun/rpc/backend_options.h>

#include "base/result.h"

// Devices between which the workers of RPC move tensors. Pure.
// Source: torch.distributed.rpc.
namespace rankrun::comm::rpc {

using rankrun::rpc::DevicePairs;
using DeviceMaps = std::map<std::string, DevicePairs>;  // by the name of a worker

// Devices of one worker. A value.
struct WorkerDevices {
  std::string worker;                // its name
  int gpus = 0;                      // number of its GPUs
  DeviceMaps maps = {};              // of its calls, by callee
  std::vector<Device> devices = {};  // that it may use; empty: those in the maps

  bool names_devices() const { return !maps.empty() || !devices.empty(); }
  bool operator==(const WorkerDevices&) const = default;
};

// Return the form in which workers tell each other of their devices, and the reverse.
// Error: kProtocol for another text.
std::string TextOf(const WorkerDevices& worker);
Result<WorkerDevices> WorkerDevicesIn(const std::string& text);

// Return "cpu" or "cuda:3"; "cuda:0 to cuda:1, cuda:1 to cuda:0".
std::string InWords(const Device& device);
std::string InWords(const DevicePairs& pairs);

// Fails if two sources have one target, or one source two. Error: kInvalid, "a target twice
// ...".
Result<void> CheckOneToOne(const DevicePairs& pairs);

// Fails at the first worker whose devices are wrong, then at the first whose maps are: all
// workers compute the same error. `is_complete`: no other worker can join later.
// Error: kInvalid, "worker a has ...".
Result<void> CheckDeviceMaps(const std::vector<WorkerDevices>& workers, bool is_complete);

// Returns the way back of the maps that lead to `worker`, by the name of the caller: on
// it, tensors of a reply move.
DeviceMaps ReverseMaps(const std::vector<WorkerDevices>& workers, const std::string& worker);

// Returns the GPUs that a worker uses, in order: those that it names, or else those of its
// own maps and of the reverse maps.
std::vector<Device> DevicesInUse(const WorkerDevices& worker, const DeviceMaps& reverse);

}  // namespace rankrun::comm::rpc
