#pragma once

#include <cstddef>
#include <cstdint>

namespace rankrun {

// What a worker does, on its status page: one slot per process group, and one
// for what else it waits for. Each is written by one thread at a time, under a
// lock that readers do not take: the sequence is odd while something changes.

// An operation, by the numbers of librankrun.
struct ActivityRecord {
  uint8_t kind = 0;  // 0: none yet
  uint8_t dtype = 0;
  uint8_t op = 0;
  int32_t root = -1;    // global rank; or the peer of a message; -1: none
  uint64_t number = 0;  // in the group's sequence, from 1; 0 of messages
  uint64_t count = 0;
  uint64_t fingerprint = 0;
};

constexpr size_t kGroupNameBytes = 47;
constexpr size_t kAwaitedBytes = 103;

struct alignas(64) GroupSlot {
  // What every operation writes, in one cache line.
  uint64_t sequence;
  uint64_t finished;  // the sequence of the last operation that is over
  uint64_t numbers;   // kind, dtype, op, 0 and root, from the lowest byte on
  uint64_t number;
  uint64_t count;
  uint64_t fingerprint;
  uint64_t entered;    // Ticks()
  uint64_t completed;  // number of the last operation of the sequence that is over

  uint32_t in_use;  // 0: free
  int32_t size;     // ranks
  char name[kGroupNameBytes + 1];
};
static_assert(sizeof(GroupSlot) == 128);

struct alignas(64) AwaitedSlot {
  uint32_t in_use;
  uint32_t unused;
  uint64_t sequence;
  uint64_t since;  // Ticks()
  char what[kAwaitedBytes + 1];
};
static_assert(sizeof(AwaitedSlot) == 128);

constexpr size_t kGroupSlots = 256;

struct ActivityTable {
  uint32_t groups_end;  // slots from here on have never been used
  AwaitedSlot awaited;
  GroupSlot groups[kGroupSlots];
};

}  // namespace rankrun
