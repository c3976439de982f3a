#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status/activity_table.h"
#include "base/status/flight_table.h"

namespace rankrun {

class StatusPage;

// An operation, read from a flight recorder. Its numbers come from memory that another
// process writes.
struct FlightOperation {
  ActivityRecord what;
  FlightState state;
  uint64_t tag;    // of a message
  uint64_t begin;  // Ticks()
  uint64_t end;    // Ticks(); 0: under way
};

// The last operations of a process group.
struct FlightHistory {
  std::string group;
  int size;
  bool is_live;                             // false: the worker has destroyed the group
  uint64_t begun;                           // operations, with those that were overwritten
  std::vector<FlightOperation> operations;  // by their begin
};

// Reads the recorder while its writer may write to it or may have died. Skips records
// that are being written, and groups without an operation.
std::vector<FlightHistory> ReadFlightHistories(const StatusPage& page);

// Removes the operations that began after `moment`, in ticks, and shows those as under
// way that ended after it.
void CutAfter(uint64_t moment, std::vector<FlightHistory>& histories);

}  // namespace rankrun
