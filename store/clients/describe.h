#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace rankrun::store {

// Error texts and deadlines that several clients share.

// "key a", "keys a, b, c and 12 more", "no keys"
std::string DescribeKeys(std::span<const std::string> keys);

// Returns "<what>: not set within 300 ms". Names the `missing` keys if there
// are any, as "at least" these if `maybe_more`.
Error KeyTimeoutError(const std::string& what, std::chrono::milliseconds timeout,
                      std::span<const std::string> missing = {}, bool maybe_more = false);

// Returns "<what>: empty for 300 ms".
Error QueueTimeoutError(const std::string& what, std::chrono::milliseconds timeout);

// Returns "meet at barrier k".
std::string DescribeBarrier(std::string_view key);

// Returns kInvalid if `world_size` is below 1.
Result<void> CheckBarrierSize(std::string_view key, int64_t world_size);

// Returns "meet at barrier k: 1 of 2 have come within 300 ms".
Error BarrierTimeoutError(std::string_view key, int64_t count, int64_t world_size,
                          std::chrono::milliseconds timeout);

// Returns the error of a MultiSet: "set keys a, b: 2 keys and 1 value".
Error UnequalLengthsError(std::span<const std::string> keys, std::span<const std::string> values);

// Returns "last written 12 s ago", in seconds, minutes, hours or days.
std::string DescribeAge(const struct stat& file, std::chrono::system_clock::time_point now);

// Returns now plus `timeout`, which is clamped to between 0 and a year so that
// the sum cannot overflow.
TimePoint DeadlineAfter(std::chrono::milliseconds timeout);

}  // namespace rankrun::store
