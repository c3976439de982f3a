#pragma once

#include <cstdint>

#include "base/clock.h"

namespace rankrun::agent {

// A step that a worker has finished.
struct WorkerStep {
  int local_rank;
  int64_t step;
  TimePoint at;
};

}  // namespace rankrun::agent
