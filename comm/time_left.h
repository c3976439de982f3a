#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace rankrun::comm {

// What a deadline leaves as a time-out: at least 1 ms, as 0 would be a wrong one,
// or none at all.
inline std::chrono::milliseconds TimeLeft(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace rankrun::comm
