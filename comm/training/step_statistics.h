#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rankrun/training/data_parallel_log.h>

#include "base/clock.h"

namespace rankrun::comm {

// Times of one step.
struct StepTimes {
  TimePoint forward_begin = {};
  TimePoint backward_begin = {};
  TimePoint backward_end = {};
  TimePoint comm_begin = {};  // the first bucket is started
  TimePoint comm_end = {};    // the last one is reduced
};

// Returns whether times are sampled before the step with this number: in the first 10, then
// every 100. Steps count from 0, so that there is a step before the first sample.
bool TakesSample(int64_t iteration);

// Adds the times of the step before `iteration` to the means in `log`.
class StepStatistics {
 public:
  void Add(int64_t iteration, const StepTimes& times, size_t unused_bytes, DataParallelLog& log);

 private:
  int64_t samples_ = 0;
};

// Return the texts of the log: the fields that a DataParallel has from its begin, integers
// first; the times of the last sample.
std::string DescribeModel(const DataParallelLog& log);
std::string DescribeTimes(const DataParallelLog& log);

}  // namespace rankrun::comm
