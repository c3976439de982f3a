#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rankrun::bench {

// Histogram of durations in nanoseconds, with buckets that are linear within
// each power of two: a percentile is at most 1/32 too high.
class Histogram {
 public:
  void Add(uint64_t nanoseconds) {
    counts_[BucketOf(nanoseconds)] += 1;
    total_ += 1;
    max_ = std::max(max_, nanoseconds);
  }
  void Clear() { *this = {}; }

  uint64_t total() const { return total_; }
  uint64_t max() const { return max_; }

  // Returns an upper bound of the shortest `share` (0 to 1) of the durations; 0
  // if there are none.
  uint64_t Percentile(double share) const {
    auto wanted = static_cast<uint64_t>(share * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > 0 && seen >= wanted) return std::min(EndOf(bucket), max_);
    }
    return max_;
  }

 private:
  static constexpr int kStepBits = 5;
  static constexpr size_t kSteps = size_t{1} << kStepBits;

  static size_t BucketOf(uint64_t value) {
    if (value < kSteps) return value;
    size_t shift = static_cast<size_t>(std::bit_width(value)) - kStepBits - 1;
    return (shift << kStepBits) + (value >> shift);
  }
  static uint64_t EndOf(size_t bucket) {
    if (bucket < kSteps) return bucket;
    size_t shift = bucket / kSteps - 1;
    uint64_t step = bucket - (shift << kStepBits);
    return ((step + 1) << shift) - 1;
  }

  std::array<uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
  uint64_t total_ = 0;
  uint64_t max_ = 0;
};

}  // namespace rankrun::bench
