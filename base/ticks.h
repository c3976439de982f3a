#pragma once

#include <cstdint>

#include "base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rankrun {

// A counter that goes on evenly and is one for all processes of a machine; what
// it counts in is found out by whoever reads. A fifth of what a clock costs.
inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// How to tell a time from ticks: by two looks at both, long enough apart. A
// look at ticks that were counted in between is off by what a look takes, a few
// dozen nanoseconds.
struct TickClock {
  uint64_t first_ticks;
  TimePoint first_time;
  uint64_t now_ticks;
  TimePoint now_time;

  // Between 0 and the time between both looks, whatever `ticks` is.
  Duration Since(uint64_t ticks) const {
    if (ticks >= now_ticks || now_ticks <= first_ticks) return Duration(0);
    if (ticks <= first_ticks) return now_time - first_time;
    const double part =
        static_cast<double>(now_ticks - ticks) / static_cast<double>(now_ticks - first_ticks);
    const auto whole = static_cast<double>((now_time - first_time).count());
    return Duration(static_cast<Duration::rep>(part * whole));
  }
};

}  // namespace rankrun
