#pragma once

#include <cstdint>

#include "base/trace/trace_format.h"

namespace rankrun {

// Converts ticks to CLOCK_MONOTONIC, by two readings of the clocks of a boot.
class TickScale {
 public:
  TickScale(const ClockReading& first, const ClockReading& last) : first_(first), last_(last) {}

  // Takes the readings of another trace of the same boot if they are farther apart.
  void Add(const TickScale& other);

  // Returns nanoseconds, between -2^61 and 2^61.
  int64_t Monotonic(uint64_t ticks) const;

  // Returns whether the readings may come from a machine, and not from a damaged file.
  bool is_plausible() const;

 private:
  double unit() const;  // nanoseconds of a tick

  ClockReading first_;
  ClockReading last_;
};

}  // namespace rankrun
