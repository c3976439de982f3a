#pragma once

#include "comm/core/algorithm.h"
#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/core/schedule.h"

namespace rankrun::comm {

// Collectives as schedules, for backends whose transport only moves blocks
// between pairs of ranks.
class ScheduleBackend : public Backend {
 public:
  Result<void> AllReduce(std::byte* data, size_t count, const Reduction& reduction,
                         const Call& call) final;
  Result<void> Reduce(std::byte* output, const std::byte* input, size_t count,
                      const Reduction& reduction, const Call& call) final;
  Result<void> Broadcast(Block data, const Call& call) final;
  Result<void> AllGather(std::span<const Block> outputs, ConstBlock input, const Call& call) final;
  Result<void> Gather(std::span<const Block> outputs, ConstBlock input, const Call& call) final;
  Result<void> Scatter(Block output, std::span<const ConstBlock> inputs, const Call& call) final;
  Result<void> ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                             const Reduction& reduction, const Call& call) final;
  Result<void> AllToAll(std::span<const Block> outputs, std::span<const ConstBlock> inputs,
                        const Call& call) final;
  Result<void> Barrier(const Call& call) final;

 protected:
  // `algorithms` must be equal on all ranks.
  ScheduleBackend(int rank, int ranks, const AlgorithmTable& algorithms)
      : rank_(rank), ranks_(ranks), algorithms_(algorithms) {}

  // Carries out one collective. `may_be_uneven`: a peer may send another number
  // of bytes than this rank expects, although the calls match.
  virtual Result<void> Run(const Call& call, const Schedule& schedule, const Blocks& blocks,
                           bool may_be_uneven) = 0;

  int rank() const { return rank_; }
  const AlgorithmTable& algorithms() const { return algorithms_; }
  int ranks() const { return ranks_; }
  RankPlace PlaceIn(const Call& call) const {
    return {.rank = rank_, .ranks = ranks_, .root = call.root};
  }

 private:
  // Runs a call without data as a barrier, because all ranks must still call
  // it.
  Result<void> RunEmpty(const Call& call);
  Result<void> ReduceByTree(std::byte* output, ConstBlock input, const Reduction& reduction,
                            const Call& call);
  Result<void> BroadcastByChain(Block data, const Call& call);

  const int rank_;
  const int ranks_;
  const AlgorithmTable algorithms_;
};

}  // namespace rankrun::comm
