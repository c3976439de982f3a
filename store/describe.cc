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
                   std::span<const std::string> missing) {
  std::string who = missing.empty() ? "" : DescribeKeys(missing) + " ";
  return Error{ErrorCode::kTimeout,
               what + ": " + who + "not set within " + std::to_string(timeout.count()) + " ms"};
}

TimePoint DeadlineAfter(milliseconds timeout) {
  constexpr milliseconds kForever = std::chrono::hours(24 * 365);
  return MonotonicClock().Now() + std::clamp(timeout, milliseconds(0), kForever);
}

}  // namespace rankrun::store
