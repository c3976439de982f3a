#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/core/schedule.h"
#include "comm/reduce/reduction.h"

namespace rankrun::comm {

// Memory of one collective.
struct Blocks {
  std::vector<ConstBlock> inputs = {};
  std::vector<Block> outputs = {};
  size_t scratch_bytes = 0;                 // size of each scratch block
  std::optional<Reduction> reduction = {};  // for schedules that reduce
};

// Returns the memory of inputs or outputs that `part` names.
Block BlockOf(const Part& part, const Blocks& blocks);

// Reduction of received data, which arrives in pieces of whole elements.
struct Reducer {
  Reduction reduction;
  std::byte* to;
  const std::byte* with;
  bool received_first;  // order of the operands

  // Reduces `bytes` at `received`, which belong at `offset` of the block.
  void Apply(const std::byte* received, size_t offset, size_t bytes) const;
};

// Data that one step sends.
struct Outgoing {
  int peer;
  ConstBlock data;
};

// Data that one step receives: into `data`, or with a reducer through memory of
// the transport. Then only the size of `data` counts.
struct Incoming {
  int peer;
  Block data;
  std::optional<Reducer> reducer = {};
  // The step sends the memory that it reduces into, so the transport reduces
  // only once everything is sent and received.
  bool reduces_after_send = false;
};

// Transport of blocks between pairs of ranks. Blocks between two ranks arrive in
// the order sent.
class PairTransport {
 public:
  virtual ~PairTransport() = default;

  // Sends and receives at the same time, and returns when both are complete.
  // Either may be null. Errors: as Backend.
  virtual Result<void> Exchange(const Outgoing* outgoing, const Incoming* incoming) = 0;
};

// Carries out schedules over a transport. 16-bit floats are rounded at every
// rank that a partial result passes.
// Thread: one at a time.  Lifetime: the transport outlives it.
class Executor {
 public:
  explicit Executor(PairTransport& transport) : transport_(transport) {}

  // Errors: those of the transport; the schedule is not continued then.
  Result<void> Run(const Schedule& schedule, const Blocks& blocks);

 private:
  Block Find(const Part& part, const Blocks& blocks);
  Result<void> RunStep(const Step& step, const Blocks& blocks);
  Incoming IncomingOf(const Step& step, const Blocks& blocks);

  PairTransport& transport_;
  std::vector<std::byte> scratch_;    // blocks of Blocks::scratch_bytes
  std::vector<size_t> scratch_used_;  // bytes in each; a partial result may be smaller
};

}  // namespace rankrun::comm
