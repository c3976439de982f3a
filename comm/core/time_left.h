#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace rankrun::comm {

// Clamps a time-out to 0 .. 1 year, so that arithmetic on deadlines cannot
// overflow.
inline std::chrono::milliseconds Bounded(std::chrono::milliseconds timeout) {
  return std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0),
                                               std::chrono::hours(24 * 365));
}

// Returns the time until `deadline` as a time-out: at least 1 ms, because 0
// means an invalid time-out or none at all.
inline std::chrono::milliseconds TimeLeft(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace rankrun::comm
