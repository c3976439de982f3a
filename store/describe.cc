#include "store/describe.h"

#include <algorithm>

namespace rankrun::store {

using std::chrono::milliseconds;

std::string DescribeKeys(std::span<const std::string> keys) {
  constexpr size_t kLongest = 8;
  if (keys.empty()) return "no keys";
  std::string text = keys.size() == 1 ? "key" : "keys";
  size_t named = std::min(keys.size(), kLongest);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? " " : ", ") + keys[i];
  if (named < keys.size()) text += " and " + std::to_string(keys.size() - named) + " more";
  return text;
}

Error NotSetInTime(const std::string& what, milliseconds timeout,
                   std::span<const std::string> missing, bool maybe_more) {
  std::string who = missing.empty() ? "" : DescribeKeys(missing) + " ";
  if (!missing.empty() && maybe_more) who.insert(0, "at least ");
  return Error{ErrorCode::kTimeout,
               what + ": " + who + "not set within " + std::to_string(timeout.count()) + " ms"};
}

Error QueueEmpty(const std::string& what, milliseconds timeout) {
  return Error{ErrorCode::kTimeout,
               what + ": empty for " + std::to_string(timeout.count()) + " ms"};
}

Error UnequalLengths(std::span<const std::string> keys, std::span<const std::string> values) {
  const auto count = [](size_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
  };
  return Error{ErrorCode::kInvalid, "set " + DescribeKeys(keys) + ": " + count(keys.size(), "key") +
                                        " and " + count(values.size(), "value")};
}

TimePoint DeadlineAfter(milliseconds timeout) {
  constexpr milliseconds kForever = std::chrono::hours(24 * 365);
  return MonotonicClock().Now() + std::clamp(timeout, milliseconds(0), kForever);
}

}  // namespace rankrun::store
