#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace rankrun::store {

inline TimePoint Now() { return MonotonicClock().Now(); }

// A time-out that would end after the end of time is a year.
inline TimePoint After(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);
  return Now() + std::clamp(timeout, std::chrono::milliseconds(0), kForever);
}

}  // namespace rankrun::store
