#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/status/flight_reader.h"
#include "base/status/ticks.h"

namespace rankrun::agent {

// The flight recorder of a worker at a moment.
struct WorkerOperations {
  std::vector<FlightHistory> histories;
  uint64_t moment = 0;  // Ticks(); none is later
  TickClock clock = {};
  std::chrono::system_clock::time_point now = {};  // the time of clock.now_ticks
};

// Reads it as it was at `moment`. May be called while the worker still writes.
WorkerOperations ReadOperations(const StatusPage& page, uint64_t moment);

// Returns the last three operations of all groups, oldest first. Pure.
std::vector<LastOperation> LastOperationsOf(const WorkerOperations& operations);

// Returns the content of a file with all operations: a JSON object, with one line for
// each operation. docs/output.md describes it. Pure.
std::string FormatOperations(const WorkerOperations& operations, const WorkerRecord& worker,
                             int attempt);

}  // namespace rankrun::agent
