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
// named if others have come.
Error NotSetInTime(const std::string& what, std::chrono::milliseconds timeout,
                   std::span<const std::string> missing = {});

// A time-out below 0 is 0; one that would end after the end of time is a year.
TimePoint DeadlineAfter(std::chrono::milliseconds timeout);

}  // namespace rankrun::store
