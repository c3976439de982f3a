#pragma once

#include <string>
#include <vector>

namespace rankrun::comm {

// Description of each rank's call, by group rank; empty: not known.
using CallsByRank = std::vector<std::string>;

// Returns "ranks 0, 2 called AllReduce #12 (16 x float32, sum); rank 1 called
// Barrier #12" with global ranks.
std::string DescribeCalls(const CallsByRank& calls, const std::vector<int>& global_ranks);

}  // namespace rankrun::comm
