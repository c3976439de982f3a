#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/clock.h"

namespace rankrun::comm {

// Sleeping on words in memory that processes share, and fences that only who
// goes to sleep has to pay for. Source: futex(2), membarrier(2).

// Whether PassFence() can be used: the kernel may not have it.
bool RegisterForFences();
// All processors that run a registered process pass a fence.
void PassFence();

// Until it is woken, the word is not `seen` any more, or after `limit`.
void FutexWait(const uint32_t* word, uint32_t seen, Duration limit);
void FutexWakeAll(const uint32_t* word);

inline const uint32_t* FutexOf(const std::atomic<uint32_t>& word) {
  return reinterpret_cast<const uint32_t*>(&word);
}
// The half that changes is what the kernel compares.
inline const uint32_t* FutexOf(const std::atomic<uint64_t>& word) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<const uint32_t*>(&word);
}

}  // namespace rankrun::comm
