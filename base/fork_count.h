#pragma once

#include <atomic>
#include <cstdint>

namespace rankrun {

namespace internal {
inline std::atomic<uint32_t> forks = 0;
}

// Starts to count. Called once by each user of ForkCount, before.
void CountForks();

// Returns how many forks lie between the process that called CountForks first and
// this one, so that a value of a parent can be recognised. Costs a load.
inline uint32_t ForkCount() { return internal::forks.load(std::memory_order_relaxed); }

}  // namespace rankrun
