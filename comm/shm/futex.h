#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/clock.h"

namespace rankrun::comm::shm {

// Sleeping on words in shared memory, and asymmetric fences: only the rank that goes to
// sleep pays for a fence.
// Source: futex(2), membarrier(2).

// Registers this process for PassFence(). False: the kernel does not support
// it.
bool RegisterForFences();
// Runs a memory fence on all processors that run a registered process.
void PassFence();

// Sleeps until a wake-up, or `limit`. Returns at once if the word is not
// `seen`.
void FutexWait(const uint32_t* word, uint32_t seen, Duration limit);
void FutexWakeAll(const uint32_t* word);

inline const uint32_t* FutexOf(const std::atomic<uint32_t>& word) {
  return reinterpret_cast<const uint32_t*>(&word);
}
// Returns the lower half, the one that each increment changes; a futex has 32
// bits.
inline const uint32_t* FutexOf(const std::atomic<uint64_t>& word) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<const uint32_t*>(&word);
}

}  // namespace rankrun::comm::shm
