#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/backend.h"
#include "comm/reduction.h"
#include "comm/shm/calls.h"
#include "comm/shm/chunk_tuner.h"
#include "comm/shm/schedule.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm {

// Memory and operation of a collective, as the steps of its schedule name them.
struct Movement {
  Operation::Kind kind;
  int root = Operation::kNoRoot;
  std::span<const ConstBlock> inputs;
  std::span<const Block> outputs;
  const Reduction* reduction = nullptr;
  bool flat = false;  // schedule.h
};

// Carries out schedules in shared memory, beginning with the call itself.
// Allocates nothing after the first call.
// Thread: one at a time. Lifetime: what it refers to outlives it.
class Executor final : public Awaited {
 public:
  Executor(const Segment& segment, Waiter& waiter, Calls& calls, std::size_t buffer_bytes);

  Result<void> Run(const Movement& movement, const Call& call);

  std::string Missing(Duration still) const override;
  bool Needs(int rank) const override;
  std::optional<Error> Doubt(Duration) const override { return std::nullopt; }

 private:
  Exchange ExchangeOf(const Movement& movement);
  bool Do(const Movement& movement, const SharedStep& step, uint64_t round);
  bool Meet(const Movement& movement);
  bool Await(int only, uint64_t value);
  void Move(const Movement& movement, const SharedStep& step);
  void Reduce(const Movement& movement, const SharedStep& step);
  std::byte* At(const Movement& movement, const Place& place) const;
  const std::byte* From(const Movement& movement, const Place& place) const;

  const Segment& segment_;
  Waiter& waiter_;
  Calls& calls_;
  const std::size_t buffer_bytes_;
  std::atomic<uint64_t>& step_;
  std::vector<std::size_t> input_bytes_;
  std::vector<std::size_t> output_bytes_;
  std::vector<const void*> parts_;
  std::vector<SharedStep> steps_;
  ChunkTuner tuner_;
  bool out_of_caches_ = false;  // the program's data is
  // Collectives in steps to which all have come. Others do not count: step words
  // stand still meanwhile, and must not be half a turn behind. Begins close to
  // the wrap, so that every program goes through it.
  uint64_t count_ = (uint64_t{1} << (64 - kStepBits)) - 20;
  uint64_t awaited_ = 0;  // the value of step words
};

}  // namespace rankrun::comm
