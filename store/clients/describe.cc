#include "store/clients/describe.h"

#include <algorithm>

namespace rankrun::store {

using std::chrono::milliseconds;

std::string DescribeKeys(std::span<const std::string> keys) {
  constexpr size_t kMax = 8;
  if (keys.empty()) return "no keys";
  std::string text = keys.size() == 1 ? "key" : "keys";
  size_t named = std::min(keys.size(), kMax);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? " " : ", ") + keys[i];
  if (named < keys.size()) text += " and " + std::to_string(keys.size() - named) + " more";
  return text;
}

Error KeyTimeoutError(const std::string& what, milliseconds timeout,
                      std::span<const std::string> missing, bool maybe_more) {
  std::string subject = missing.empty() ? "" : DescribeKeys(missing) + " ";
  if (!missing.empty() && maybe_more) subject.insert(0, "at least ");
  return Error{ErrorCode::kTimeout,
               what + ": " + subject + "not set within " + std::to_string(timeout.count()) + " ms"};
}

Error QueueTimeoutError(const std::string& what, milliseconds timeout) {
  return Error{ErrorCode::kTimeout,
               what + ": empty for " + std::to_string(timeout.count()) + " ms"};
}

std::string DescribeBarrier(std::string_view key) {
  return std::string("meet at barrier ").append(key);
}

Result<void> CheckBarrierSize(std::string_view key, int64_t world_size) {
  if (world_size >= 1) return {};
  return Error{ErrorCode::kInvalid, DescribeBarrier(key) + ": world_size is " +
                                        std::to_string(world_size) + ": want at least 1"};
}

Error BarrierTimeoutError(std::string_view key, int64_t count, int64_t world_size,
                          milliseconds timeout) {
  return Error{ErrorCode::kTimeout, DescribeBarrier(key) + ": " + std::to_string(count) + " of " +
                                        std::to_string(world_size) + " have come within " +
                                        std::to_string(timeout.count()) + " ms"};
}

Error UnequalLengthsError(std::span<const std::string> keys, std::span<const std::string> values) {
  auto count = [](size_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
  };
  return Error{ErrorCode::kInvalid, "set " + DescribeKeys(keys) + ": " + count(keys.size(), "key") +
                                        " and " + count(values.size(), "value")};
}

std::string DescribeAge(const struct stat& file, std::chrono::system_clock::time_point now) {
  auto written = std::chrono::system_clock::from_time_t(file.st_mtim.tv_sec);
  // The clock of a file server may be ahead.
  int64_t age =
      std::max<int64_t>(0, std::chrono::floor<std::chrono::seconds>(now - written).count());
  std::string text = std::to_string(age / 86'400) + " days";
  if (age < 2 * 86'400) text = std::to_string(age / 3'600) + " h";
  if (age < 2 * 3'600) text = std::to_string(age / 60) + " min";
  if (age < 2 * 60) text = std::to_string(age) + " s";
  return "last written " + text + " ago";
}

TimePoint DeadlineAfter(milliseconds timeout) {
  constexpr milliseconds kForever = std::chrono::hours(24 * 365);
  return MonotonicClock().Now() + std::clamp(timeout, milliseconds(0), kForever);
}

}  // namespace rankrun::store
