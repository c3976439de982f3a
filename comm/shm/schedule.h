#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/core/operation.h"

// Schedules of collectives through bounce buffers, as data. Each rank cuts its
// part into chunks. Round t of every rank:
//   wait until the other ranks have published round t-1; put chunk t into its own
//   buffer; reduce chunk t-1 from all buffers; get chunk t-1 (in two-phase
//   reductions t-2) from the others' buffers; publish the round.
// Round 0 only puts, without a wait, into one of two buffers reserved for it.
// Later rounds take the other buffers in turn. Two of these would be correct: a
// chunk is read until the next round only, and results lie in slots that no
// rank puts to. More are faster, because older data is read from the cache that
// processors share, not from the writer's own.
// Bytes moved per rank, with n ranks and b bytes per block: all-gather b + n b;
// all-to-all and the root of scatter 2 n b; flat all-reduce b + n b read + b;
// other all-reduce 2 b (n-1)/n copied, b read and 2 b/n written by the
// reduction.
namespace rankrun::comm::shm {

// Description of a collective for one rank. A value; the spans outlive it.
struct Exchange {
  Operation::Kind kind;
  int rank;
  int world_size;
  int root = Operation::kNoRoot;
  // Sizes of the blocks in bytes, one per rank or a single one. Broadcast has
  // one input on the root and one output elsewhere; AllReduce and Reduce have
  // one each.
  std::span<const size_t> inputs = {};
  std::span<const size_t> outputs = {};
  size_t buffer_bytes = 0;  // size of each of the kBuffers
  uint64_t number = 0;      // number of this collective; alternates the buffers of round 0
  bool flat = false;        // AllReduce, Reduce: each rank with a result reduces all of it
};

constexpr size_t kBuffers = 6;
constexpr size_t kFirstBuffers = 2;  // reserved for round 0

// Returns the buffer of round 0 of this collective.
constexpr size_t FirstBufferOf(uint64_t number) { return number % kFirstBuffers; }

// Returns whether the blocks that a rank sends or receives may differ in size.
bool BlocksMayDiffer(Operation::Kind kind);

struct Place {
  enum class Space : uint8_t { kNone, kInput, kOutput, kBounce };
  Space space = Space::kNone;
  int index = 0;      // block, or the rank whose bounce memory it is
  size_t offset = 0;  // in bytes
  bool operator==(const Place&) const = default;
};

struct SharedStep {
  enum class Kind : uint8_t { kCopy, kReduce, kPublish, kAwait };
  static constexpr int kAll = -1;

  Kind kind;
  int rank = kAll;     // kAwait: rank to wait for
  uint64_t value = 0;  // kPublish, kAwait: value of the step counter
  Place to = {};       // kCopy, kReduce: target; kReduce: may be kNone
  Place also = {};     // kReduce: second target, may be kNone
  Place from = {};     // kCopy: source; kReduce: this rank's part
  size_t bounce = 0;   // kReduce: offset of the others' parts in their bounce memory
  size_t bytes = 0;
  uint64_t chunk = 0;  // kCopy, kReduce
};

// Step value that a rank publishes when it has finished the collective.
constexpr uint64_t kLastStep = (uint64_t{1} << 24) - 1;

struct Shape {
  // At least 2, because round 1 waits for all ranks even without data. May
  // differ between ranks if their blocks differ.
  uint64_t rounds;
  uint64_t chunks;     // rounds that put a chunk
  uint64_t behind;     // rounds from the put of a chunk to its last use
  size_t chunk_bytes;  // size of the largest chunk
};
Shape ShapeOf(const Exchange& exchange);

// Returns the maximum number of steps in a round.
size_t MaxSteps(int world_size);

// Replaces `steps` with the steps of round `round`.
void StepsOf(const Exchange& exchange, uint64_t round, std::vector<SharedStep>& steps);

}  // namespace rankrun::comm::shm
