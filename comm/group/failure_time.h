#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status/ticks.h"

// When a call failed, which the ranks publish in the store, and when a rank began it.
namespace rankrun::comm {

using WallTime = std::chrono::system_clock::time_point;

// Times of a call that has failed.
struct CallTimes {
  CallTimes(std::chrono::milliseconds limit) : timeout(limit) {}
  CallTimes(std::chrono::milliseconds limit, uint64_t ticks) : timeout(limit), came(ticks) {}

  std::chrono::milliseconds timeout;
  std::optional<uint64_t> came = {};  // Ticks() at its beginning
};

// First reading of two clocks, by which later ticks become times.
struct TickOrigin {
  uint64_t ticks = Ticks();
  TimePoint time = MonotonicClock().Now();

  WallTime WallTimeOf(uint64_t then) const;
};

struct TimedText {
  WallTime at;
  bool is_of_this_host;  // whose clock gave the time
  std::string text;
};
// Returns the form of a text for the store, with the present time.
std::string WithTime(const std::string& text, WallTime now = std::chrono::system_clock::now());
// Returns the text of such a form. No value: it is none.
std::optional<TimedText> TimedTextIn(const std::string& stored);

// Returns "failed 1.0 s before this rank came: "; empty: this rank had come, as far as the clocks
// of two hosts tell.
std::string BeforeThisRank(const TimedText& failure, WallTime came);

}  // namespace rankrun::comm
