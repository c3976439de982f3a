#pragma once

#include <cstdint>

#include "base/clock.h"

namespace rankrun {

// Returns a counter that advances evenly and is the same for all processes of a
// machine. Readers determine its unit. Costs a fifth of a clock call.
inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Conversion of ticks into times, by two readings of both clocks that are far
// enough apart. A converted time is off by the duration of a reading, a few
// dozen nanoseconds.
struct TickClock {
  uint64_t first_ticks;
  TimePoint first_time;
  uint64_t now_ticks;
  TimePoint now_time;

  // Returns the time since `ticks`: at least 0 and at most the time between
  // both readings, whatever `ticks` is.
  Duration Since(uint64_t ticks) const {
    if (ticks >= now_ticks || now_ticks <= first_ticks) return Duration(0);
    if (ticks <= first_ticks) return now_time - first_time;
    const double part =
        static_cast<double>(now_ticks - ticks) / static_cast<double>(now_ticks - first_ticks);
    auto whole = static_cast<double>((now_time - first_time).count());
    return Duration(static_cast<Duration::rep>(part * whole));
  }
};

}  // namespace rankrun
