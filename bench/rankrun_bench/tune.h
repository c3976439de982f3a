#pragma once

#include "bench/rankrun_bench/options.h"

namespace rankrun::bench {

// Returns whether the library has several algorithms for it.
bool HasAlgorithms(Collective collective);

// Measures each algorithm of the collectives over tcp. Rank 0 prints the times, and
// the value of RANKRUN_ALGORITHMS that chooses the fastest. Must be called by all
// ranks. Returns the number of wrong elements. Throws DistError.
int64_t Tune(const Options& options);

}  // namespace rankrun::bench
