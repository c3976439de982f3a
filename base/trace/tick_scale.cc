#include "base/trace/tick_scale.h"

#include <algorithm>

namespace rankrun {

void TickScale::Add(const TickScale& other) {
  if (other.first_.ticks < first_.ticks) first_ = other.first_;
  if (other.last_.ticks > last_.ticks) last_ = other.last_;
}

double TickScale::unit() const {
  if (last_.ticks == first_.ticks) return 1;  // there is but one reading
  return static_cast<double>(last_.monotonic - first_.monotonic) /
         static_cast<double>(last_.ticks - first_.ticks);
}

int64_t TickScale::Monotonic(uint64_t ticks) const {
  constexpr double kMax = static_cast<double>(int64_t{1} << 61);
  const auto since = static_cast<double>(static_cast<int64_t>(ticks - first_.ticks));
  const auto start = static_cast<double>(first_.monotonic);
  const double passed = std::clamp(since * unit(), -kMax - start, kMax - start);
  return first_.monotonic + static_cast<int64_t>(passed);
}

bool TickScale::is_plausible() const {
  constexpr int64_t kMaxMonotonic = int64_t{1} << 60;  // 36 years
  constexpr int64_t kMaxRealtime = int64_t{1} << 62;   // in the year 2116
  for (const ClockReading& reading : {first_, last_}) {
    if (reading.monotonic < 0 || reading.monotonic > kMaxMonotonic) return false;
    if (reading.realtime < 0 || reading.realtime > kMaxRealtime) return false;
  }
  constexpr double kMinUnit = 0.01;
  constexpr double kMaxUnit = 1000;
  return last_.ticks >= first_.ticks && unit() >= kMinUnit && unit() <= kMaxUnit;
}

}  // namespace rankrun
