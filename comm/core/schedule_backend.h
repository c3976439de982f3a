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
  Result<void> Run(const Collective& collective, const Call& call) override;

 protected:
  // `algorithms` must be equal on all ranks.
  ScheduleBackend(int rank, int ranks, const AlgorithmTable& algorithms)
      : rank_(rank), ranks_(ranks), algorithms_(algorithms) {}

  // Carries out one collective. `may_be_uneven`: a peer may send another number
  // of bytes than this rank expects, although the calls match.
  virtual Result<void> RunSchedule(const Call& call, const Schedule& schedule, const Blocks& blocks,
                                   bool may_be_uneven) = 0;

  int rank() const { return rank_; }
  const AlgorithmTable& algorithms() const { return algorithms_; }
  int ranks() const { return ranks_; }

 private:
  const int rank_;
  const int ranks_;
  const AlgorithmTable algorithms_;
};

}  // namespace rankrun::comm
