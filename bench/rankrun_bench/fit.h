#pragma once

#include <cstddef>
#include <vector>

namespace rankrun::bench {

// Choice among algorithms, of which each takes over from the one before at a size.
struct Fit {
  // For each algorithm but the last: the number of sizes at which it or an earlier
  // one is chosen.
  std::vector<size_t> cuts;
  double cost;  // sum of the logarithms of the chosen times
};

// Returns the choice of least cost. `times[a][s]` is the time of algorithm a at
// size s; all have the same sizes. Pure.
Fit FitAlgorithms(const std::vector<std::vector<double>>& times);

}  // namespace rankrun::bench
