#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "comm/core/collective.h"

namespace rankrun::comm {

// Numbers of bytes that go from this rank to another one and back.
struct PairSizes {
  uint64_t sent;
  uint64_t wanted;
};

// Returns the sizes between this rank and each rank. Empty if the fingerprint of the call has them.
// Pure.
std::vector<PairSizes> SizesOf(const Collective& collective, int rank, int ranks);

// Compares this rank's call with those of all ranks: lets `run` run a barrier, or an all-to-all of
// the sizes `mine`. A difference of sizes is found on both sides. `global_ranks`: by group rank,
// for texts. Errors: those of `run`; kMismatch.
Result<void> CompareCalls(const Operation& operation, std::vector<PairSizes> mine, int rank,
                          const std::vector<int>& global_ranks,
                          const std::function<Result<void>(const Collective&)>& run);

}  // namespace rankrun::comm
