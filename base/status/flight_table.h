#pragma once

#include <cstddef>
#include <cstdint>

namespace rankrun {

// Flight recorder: the last operations of each process group of a worker, in the
// memory file of its status page, behind the page. The place of a group here is that
// of its slot on the page. Memory is taken only for records that were written.
constexpr size_t kFlightRecords = 2000;  // of a ring
constexpr size_t kFlightGroups = 64;     // the first slots of the page

enum class FlightState : uint8_t { kUnderWay = 1, kSucceeded = 2, kFailed = 3 };

// One cache line.
struct alignas(64) FlightRecord {
  // Number of the record in its ring, from 1, times 4, plus FlightState. Written last;
  // 0: the record is being written, or free.
  uint64_t stamp;
  uint64_t numbers;  // kind, dtype, op, 0 and peer, from the lowest byte on
  uint64_t number;   // in the group's sequence; 0: has none
  uint64_t count;
  uint64_t tag;
  uint64_t fingerprint;
  uint64_t begin;  // Ticks()
  uint64_t end;    // Ticks(), valid if the state is not kUnderWay
};
static_assert(sizeof(FlightRecord) == 64);

struct alignas(4096) FlightRing {
  alignas(64) uint64_t begun;  // records so far
  FlightRecord records[kFlightRecords];
};

// The rings of a group.
struct FlightGroup {
  FlightRing collectives;  // in memory of the CPU; one writer at a time
  FlightRing others;       // messages, monitored barriers and collectives of devices
};

constexpr size_t kFlightBytes = kFlightGroups * sizeof(FlightGroup);

}  // namespace rankrun
