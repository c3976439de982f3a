#pragma once

#include <chrono>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace rankrun::store {

// What the errors and deadlines of several clients have in common.

// "key a", "keys a, b, c and 12 more", "no keys"
std::string DescribeKeys(std::span<const std::string> keys);

// "<what>: not set within 300 ms", with those of the keys that are missing
// named if others have come, as "at least" these if there may be more.
Error NotSetInTime(const std::string& what, std::chrono::milliseconds timeout,
                   std::span<const std::string> missing = {}, bool maybe_more = false);

// "<what>: empty for 300 ms"
Error QueueEmpty(const std::string& what, std::chrono::milliseconds timeout);

// Of MultiSet: "set keys a, b: 2 keys and 1 value"
Error UnequalLengths(std::span<const std::string> keys, std::span<const std::string> values);

// A time-out below 0 is 0; one that would end after the end of time is a year.
TimePoint DeadlineAfter(std::chrono::milliseconds timeout);

}  // namespace rankrun::store
