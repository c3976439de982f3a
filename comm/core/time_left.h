#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace rankrun::comm {

// Clamps a time-out to 0 .. 1 year, so that arithmetic on deadlines cannot
// overflow.
inline std::chrono::milliseconds Bounded(std::chrono::milliseconds timeout) {
  return std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0),
                                               std::chrono::hours(24 * 365));
}

// Returns the time-out of a call that may have one of its own.
// Error: kInvalid, less than 1 ms.
inline Result<std::chrono::milliseconds> EffectiveTimeout(
    const std::optional<std::chrono::milliseconds>& own, std::chrono::milliseconds otherwise) {
  std::chrono::milliseconds timeout = own.value_or(otherwise);
  if (timeout >= std::chrono::milliseconds(1)) return Bounded(timeout);
  return Error{ErrorCode::kInvalid,
               "timeout is " + std::to_string(timeout.count()) + " ms: want at least 1 ms"};
}

// Returns the time until `deadline` as a time-out: at least 1 ms, because 0
// means an invalid time-out or none at all.
inline std::chrono::milliseconds TimeLeft(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace rankrun::comm
