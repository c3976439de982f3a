#pragma once

#include <cstddef>

namespace rankrun::store {

// What the engine counts besides the bytes of keys and values, roughly: nodes
// of the table and of lists, with their share of buckets and slots.
constexpr size_t kEntryBytes = 128;
constexpr size_t kExtrasBytes = 96;
constexpr size_t kWaiterBytes = 64;
constexpr size_t kItemBytes = 64;

}  // namespace rankrun::store
