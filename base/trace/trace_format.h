#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status/operation_names.h"

namespace rankrun {

// File with the operations of one rank in one attempt. It is complete up to the last
// operation when the rank is killed, because all of it but whole blocks of operations
// that ended earlier is mapped memory:
//
//   header | operations under way | ring of blocks | blocks that have left the ring
//
// A block leaves the ring by a write to the end of the file, which costs a fifth of
// writing to new mapped memory. The byte order is the machine's.
constexpr uint64_t kTraceMagic = 0x31454341'52545252;  // "RRTRACE1", little-endian
constexpr uint32_t kTraceVersion = 1;
constexpr size_t kTracesUnderWay = 1024;  // operations
constexpr size_t kTraceBlockRecords = 4096;
constexpr size_t kTraceRingBlocks = 4;
constexpr size_t kMaxTraceBlocks = 1024;  // 256 MiB, 4 million operations

// The same moment on three clocks.
struct ClockReading {
  uint64_t ticks;     // Ticks()
  int64_t monotonic;  // CLOCK_MONOTONIC, nanoseconds
  int64_t realtime;   // CLOCK_REALTIME, nanoseconds
};

struct TraceHeader {
  uint64_t magic;
  uint32_t version;
  int32_t rank;  // global
  int32_t attempt;
  int32_t pid;
  uint64_t lost;       // operations for which there was no room
  ClockReading first;  // when the file was made
  uint64_t latest;     // index in `later` of the last reading
  ClockReading later[2];
  uint64_t ring[kTraceRingBlocks];  // number of the block in each place, from 0
  // Texts that end with a zero.
  char host[256];
  char boot[64];  // id of the boot; processes of one boot have the same ticks
  char run_id[256];
};

// Kinds beyond those of librankrun's operations (NameOfCollective).
namespace trace_kind {
constexpr uint8_t kMonitoredBarrier = kMonitoredBarrierKind;
constexpr uint8_t kStoreGet = 65;
constexpr uint8_t kStoreWait = 66;
constexpr uint8_t kStoreMultiGet = 67;
constexpr uint8_t kStoreBarrier = 68;
constexpr uint8_t kStoreQueuePop = 69;
constexpr uint8_t kRpcCall = 70;    // peer: id of the callee
constexpr uint8_t kRpcMethod = 71;  // runs here; peer: id of the caller
constexpr uint8_t kGroup = 253;     // no operation: describes a group
constexpr uint8_t kText = 254;      // no operation: a part of a text
}  // namespace trace_kind

// Returns "AllReduce", "MonitoredBarrier", "StoreGet", ...; "unknown" for others.
const char* NameOfTraced(uint8_t kind);

// An operation, or a group: there `key` identifies it on all ranks, `count` is its
// size and `text` its name.
struct TraceRecord {
  uint64_t begin;    // Ticks(), written last; 0: nothing is here
  uint64_t numbers;  // kind, dtype, op, 1 if it failed, and peer, from the lowest byte on
  uint64_t end;      // 0: under way
  uint64_t number;   // in the group's sequence; 0: has none
  uint64_t count;    // elements
  uint64_t bytes;
  uint64_t tag;    // of a message; `key` of a group
  uint32_t group;  // 0: none
  uint32_t text;   // key of a store, or method of RPC; 0: none
};
static_assert(sizeof(TraceRecord) == 64);

constexpr size_t kTracePartBytes = 32;
struct TraceText {
  uint64_t begin;
  uint64_t numbers;
  uint32_t text;   // from 1
  uint32_t part;   // from 0
  uint32_t bytes;  // of this part
  uint32_t unused;
  char part_of_text[kTracePartBytes];
};
static_assert(sizeof(TraceText) == sizeof(TraceRecord));

constexpr size_t kTraceBlockBytes = kTraceBlockRecords * sizeof(TraceRecord);

// The part of the file that is mapped; blocks that have left the ring follow.
struct TraceMapping {
  TraceHeader header;
  alignas(4096) TraceRecord under_way[kTracesUnderWay];
  TraceRecord ring[kTraceRingBlocks][kTraceBlockRecords];
};

inline uint64_t PackedKinds(uint8_t kind, uint8_t dtype, uint8_t op, int32_t peer) {
  return uint64_t{kind} | uint64_t{dtype} << 8 | uint64_t{op} << 16 |
         uint64_t{static_cast<uint32_t>(peer)} << 32;
}
inline uint64_t WithPeer(uint64_t numbers, int32_t peer) {
  return (numbers & 0xffffffff) | uint64_t{static_cast<uint32_t>(peer)} << 32;
}
constexpr uint64_t kTraceFailed = uint64_t{1} << 24;  // in `numbers`

}  // namespace rankrun
