#include "bench/rankrun_bench/fit.h"

#include <algorithm>
#include <cmath>

namespace rankrun::bench {

// Goes through the algorithms, and knows for each number of sizes the least cost
// of giving these to the algorithms so far.
Fit FitAlgorithms(const std::vector<std::vector<double>>& times) {
  const size_t sizes = times.front().size();
  std::vector<double> cost(sizes + 1, INFINITY);
  cost[0] = 0;
  std::vector<std::vector<size_t>> begins;  // of each algorithm's sizes, by their end
  for (const std::vector<double>& of_one : times) {
    std::vector<size_t> begin(sizes + 1);
    for (size_t end = 0; end <= sizes; ++end) begin[end] = end;
    for (size_t end = 1; end <= sizes; ++end) {
      double with_this = cost[end - 1] + std::log(of_one[end - 1]);
      if (with_this >= cost[end]) continue;
      cost[end] = with_this;
      begin[end] = begin[end - 1];
    }
    begins.push_back(begin);
  }
  Fit fit{.cuts = std::vector<size_t>(times.size() - 1), .cost = cost[sizes]};
  size_t end = sizes;
  for (size_t a = times.size() - 1; a > 0; --a) fit.cuts[a - 1] = end = begins[a][end];
  return fit;
}

}  // namespace rankrun::bench
