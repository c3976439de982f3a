#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status/operation_names.h"

namespace rankrun {

// Activity of a worker, on its status page: one slot per process group, and one
// for other waits. Each slot has one writer at a time, under a lock that
// readers do not take. Its sequence is odd while it changes.

// An operation, in the numbers of librankrun.
struct ActivityRecord {
  uint8_t kind = 0;  // 0: none yet
  uint8_t dtype = 0;
  uint8_t op = 0;
  ProgramCall part_of = ProgramCall::kNone;
  int32_t root = -1;    // global rank of the root, or peer of a message; -1: none
  uint64_t number = 0;  // in the group's sequence, from 1; 0 for messages
  uint64_t count = 0;
  uint64_t fingerprint = 0;
};

constexpr unsigned kPartOfShift = 25;  // above kInBackground
static_assert(static_cast<unsigned>(ProgramCall::kJoin) <= 0x1f);

inline uint64_t PackedNumbers(const ActivityRecord& record) {
  return uint64_t{record.kind} | uint64_t{record.dtype} << 8 | uint64_t{record.op} << 16 |
         uint64_t{static_cast<uint8_t>(record.part_of)} << kPartOfShift |
         uint64_t{static_cast<uint32_t>(record.root)} << 32;
}
inline ActivityRecord Unpacked(uint64_t numbers, uint64_t number, uint64_t count,
                               uint64_t fingerprint) {
  return {.kind = static_cast<uint8_t>(numbers),
          .dtype = static_cast<uint8_t>(numbers >> 8),
          .op = static_cast<uint8_t>(numbers >> 16),
          .part_of = static_cast<ProgramCall>(numbers >> kPartOfShift & 0x1f),
          .root = static_cast<int32_t>(static_cast<uint32_t>(numbers >> 32)),
          .number = number,
          .count = count,
          .fingerprint = fingerprint};
}

constexpr size_t kGroupNameBytes = 47;
constexpr size_t kAwaitedBytes = 103;

struct alignas(64) GroupSlot {
  // Written by every operation; one cache line.
  uint64_t sequence;
  uint64_t finished;  // sequence of the last completed operation
  uint64_t numbers;   // kind, dtype, op, kInBackground, part_of and root, from the lowest byte on
  uint64_t number;
  uint64_t count;
  uint64_t fingerprint;
  uint64_t entered;    // Ticks()
  uint64_t completed;  // number of the last completed operation

  uint32_t in_use;  // 0: free
  int32_t size;     // ranks
  char name[kGroupNameBytes + 1];
  uint64_t waiting;  // Ticks() since which threads wait for operations in the background; 0: none
};
static_assert(sizeof(GroupSlot) == 128);

// Bit of `numbers` of an operation that runs in a thread of librankrun.
constexpr uint64_t kInBackground = uint64_t{1} << 24U;

struct alignas(64) AwaitedSlot {
  uint32_t in_use;
  uint32_t rank_plus_1;  // global rank for which it waits, plus 1; 0: none
  uint64_t sequence;
  uint64_t since;  // Ticks()
  char what[kAwaitedBytes + 1];
};
static_assert(sizeof(AwaitedSlot) == 128);

constexpr size_t kGroupSlots = 256;

struct ActivityTable {
  uint32_t groups_end;  // slots from here on have never been used
  uint32_t users;       // LibraryUse objects that exist
  AwaitedSlot awaited;
  GroupSlot groups[kGroupSlots];
};

}  // namespace rankrun
