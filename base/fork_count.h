#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

// Each shared library has a count of its own.
namespace rankrun {

namespace internal {
inline std::atomic<uint32_t> forks = 0;
}

// Starts to count. Called once by each user of ForkCount, before.
inline void CountForks() {
  static const int failed = pthread_atfork(nullptr, nullptr, [] { internal::forks.fetch_add(1); });
  static_cast<void>(failed);  // out of memory: forks are not noticed
}

// Returns how many forks lie between the process that called CountForks first and
// this one, so that a value of a parent can be recognised. Costs a load.
inline uint32_t ForkCount() { return internal::forks.load(std::memory_order_relaxed); }

}  // namespace rankrun
