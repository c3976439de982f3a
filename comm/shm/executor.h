#pragma once

#include <cstdint>
#include <vector>

#include "comm/core/backend.h"
#include "comm/shm/call_rendezvous.h"
#include "comm/shm/chunk_tuner.h"
#include "comm/shm/schedule.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm::shm {

// Carries out the schedule of a collective in shared memory, including the
// rendezvous of its call. Allocates nothing after the first call.
// Thread: one at a time. Lifetime: the constructor's arguments outlive it.
class Executor final : public WaitTarget {
 public:
  Executor(const Segment& segment, Waiter& waiter, CallRendezvous& calls, size_t buffer_bytes);

  // `flat`: as in schedule.h.
  Result<void> Run(const Collective& collective, bool flat, const Call& call);

  std::string Missing(Duration still) const override;
  bool Needs(int rank) const override;
  std::optional<Error> CheckFailure(Duration) const override { return std::nullopt; }

 private:
  Exchange ExchangeOf(const Collective& collective, bool flat);
  bool Do(const Collective& collective, const SharedStep& step, uint64_t round);
  bool Meet(const Collective& collective);
  bool Await(int only, uint64_t value);
  void Move(const Collective& collective, const SharedStep& step);
  void Reduce(const Collective& collective, const SharedStep& step);
  std::byte* At(const Collective& collective, const Place& place) const;
  const std::byte* From(const Collective& collective, const Place& place) const;

  const Segment& segment_;
  Waiter& waiter_;
  CallRendezvous& calls_;
  const size_t buffer_bytes_;
  std::atomic<uint64_t>& step_;
  std::vector<size_t> input_bytes_;
  std::vector<size_t> output_bytes_;
  std::vector<const void*> parts_;
  std::vector<SharedStep> steps_;
  ChunkTuner tuner_;
  bool out_of_caches_ = false;  // the program's data is too large for the caches
  // Stepped collectives that all ranks have called. Other collectives do not
  // count: they leave the step counters unchanged, and no counter may fall
  // behind by half of its range. Starts close to the wrap, so that every
  // program passes it.
  uint64_t count_ = (uint64_t{1} << (64 - kStepBits)) - 20;
  uint64_t awaited_ = 0;  // value of the step counters to wait for
};

}  // namespace rankrun::comm::shm
