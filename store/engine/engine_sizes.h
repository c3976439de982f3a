#pragma once

#include <cstddef>

namespace rankrun::store {

// Estimated overhead that the engine counts in addition to the bytes of keys
// and values: nodes of the table and of lists, with their share of buckets and
// slots.
constexpr size_t kEntryBytes = 128;
constexpr size_t kExtrasBytes = 96;
constexpr size_t kWaitBytes = 128;   // per WAIT or BARRIER
constexpr size_t kWaiterBytes = 80;  // per name of a wait, until the wait is fulfilled; per watch
constexpr size_t kItemBytes = 64;

}  // namespace rankrun::store
