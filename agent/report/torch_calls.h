#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"

// The dumps of PyTorch's flight recorder: the collectives that a worker called last. PyTorch
// writes one when NCCL's watchdog has seen a time-out or an error.
// Source: torch/csrc/distributed/c10d/FlightRecorder.hpp
namespace rankrun::agent {

// Variable of the workers with the beginning of the paths of their dumps. A rank follows it.
constexpr const char* kTorchDumpVariable = "TORCH_FR_DUMP_TEMP_FILE";

// Returns the paths where the dump of a rank may be: that of the variables in the workers'
// environment ("NAME=value"), or that of this job. Pure.
std::vector<std::string> TorchDumpFiles(const std::vector<std::string>& environment,
                                        const std::string& prefix, int global_rank);

// Collectives and messages that a dump has.
struct TorchDump {
  // The last collective of each group, and the last message if it is under way.
  std::vector<GroupCall> calls = {};
  std::vector<LastOperation> last_operations = {};  // the last three, oldest first
  WorkerActivity activity = {};                     // the oldest that is under way
};

// Reads the content of a dump as of `now`. Empty if it is no dump, or has no calls. Pure.
TorchDump ReadTorchDump(std::string_view bytes, std::chrono::system_clock::time_point now);

}  // namespace rankrun::agent
