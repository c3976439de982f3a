#pragma once

#include <cstddef>

namespace rankrun::store {

// What the engine counts besides the bytes of keys and values, roughly: nodes
// of the table and of lists, with their share of buckets and slots.
constexpr size_t kEntryBytes = 128;
constexpr size_t kExtrasBytes = 96;
constexpr size_t kWaitBytes = 128;   // of a WAIT or BARRIER, whatever it waits for
constexpr size_t kWaiterBytes = 80;  // of each name of it, until all have come; of a watch
constexpr size_t kItemBytes = 64;

}  // namespace rankrun::store
