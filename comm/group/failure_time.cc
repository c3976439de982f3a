#include "comm/group/failure_time.h"

#include <charconv>
#include <string_view>

#include "base/format.h"
#include "base/host_name.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// Least delay of a rank that is late.
constexpr milliseconds kLate{10};
// The same by the clocks of two hosts, which may differ.
constexpr milliseconds kLateBetweenHosts{1000};

// Returns a word that differs between hosts, and between two boots of one.
const std::string& NameOfClock() {
  static const std::string name = [] {
    std::string boot = BootId();
    return boot.empty() ? "unknown" : boot;
  }();
  return name;
}

}  // namespace

WallTime TickOrigin::WallTimeOf(uint64_t then) const {
  const TickClock clock{.first_ticks = ticks,
                        .first_time = time,
                        .now_ticks = Ticks(),
                        .now_time = MonotonicClock().Now()};
  return std::chrono::system_clock::now() -
         std::chrono::duration_cast<WallTime::duration>(clock.Since(then));
}

std::string WithTime(const std::string& text, WallTime now) {
  auto since_1970 = std::chrono::duration_cast<milliseconds>(now.time_since_epoch());
  return std::to_string(since_1970.count()) + " " + NameOfClock() + " " + text;
}

std::optional<TimedText> TimedTextIn(const std::string& stored) {
  int64_t count = 0;
  const char* end = stored.data() + stored.size();
  auto [rest, error] = std::from_chars(stored.data(), end, count);
  if (error != std::errc() || rest == end || *rest != ' ') return std::nullopt;
  const std::string_view words(rest + 1, end);
  const size_t clock_end = words.find(' ');
  if (clock_end == words.npos) return std::nullopt;
  return TimedText{.at = WallTime(milliseconds(count)),
                   .is_of_this_host = words.substr(0, clock_end) == NameOfClock(),
                   .text = std::string(words.substr(clock_end + 1))};
}

std::string BeforeThisRank(const TimedText& failure, WallTime came) {
  const auto late = came - failure.at;
  if (late < (failure.is_of_this_host ? kLate : kLateBetweenHosts)) return "";
  return "failed " + FormatSeconds(late) + " before this rank came" +
         (failure.is_of_this_host ? ": " : ", by the clocks of two hosts: ");
}

}  // namespace rankrun::comm
