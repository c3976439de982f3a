#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/operation.h"

// Collectives through bounce buffers as data. Each rank cuts its part into
// chunks and does the same in each round t:
//   put chunk t into its buffer; reduce chunk t-1 out of all buffers; get chunk
//   t-1 (of what is reduced first: t-2) out of the others' buffers; publish,
// and before each round awaits the one before on the others. Round 0 only puts,
// into one of two buffers of its own, before anybody is waited for. The other
// rounds take the rest in turn. Two would be enough: what is put in round t was
// read until round t-1, and where results lie nothing is put. More are faster:
// what was written a while ago is read out of the cache that processors share,
// not out of that of the writer.
// Bytes moved by a rank of n, of b per block: all-gather b + n b, all-to-all
// and scatter's root 2 n b; all-reduce flat b + n b read + b, else 2 b (n-1)/n
// copied, b read and 2 b/n written by the reduction.
namespace rankrun::comm {

// What a collective is for one rank. A value; the spans outlive it.
struct Exchange {
  Operation::Kind kind;
  int rank;
  int world_size;
  int root = Operation::kNoRoot;
  // In bytes: of the blocks for each rank, or of the only one. Of Broadcast: at
  // the root `inputs`, elsewhere `outputs`. AllReduce and Reduce have one each.
  std::span<const std::size_t> inputs = {};
  std::span<const std::size_t> outputs = {};
  std::size_t buffer_bytes = 0;  // of each of the kBuffers
  uint64_t number = 0;           // of this collective; alternates buffers of round 0
  bool flat = false;             // AllReduce, Reduce: who wants the result reduces all of it
};

constexpr std::size_t kBuffers = 6;

// Whether the blocks that a rank has for the others, or wants of them, may be of
// different sizes.
bool BlocksMayDiffer(Operation::Kind kind);

struct Place {
  enum class Space : uint8_t { kNone, kInput, kOutput, kBounce };
  Space space = Space::kNone;
  int index = 0;           // block, or the rank whose bounce memory it is
  std::size_t offset = 0;  // in bytes
  bool operator==(const Place&) const = default;
};

struct SharedStep {
  enum class Kind : uint8_t { kCopy, kReduce, kPublish, kAwait };
  static constexpr int kAll = -1;

  Kind kind;
  int rank = kAll;         // kAwait: for whom, of the others
  uint64_t value = 0;      // kPublish, kAwait: of the step counter
  Place to = {};           // kCopy, kReduce; of the latter kNone, or
  Place also = {};         // kReduce: a second place for the result
  Place from = {};         // kCopy; kReduce: this rank's part
  std::size_t bounce = 0;  // kReduce: where the others' parts are in their memory
  std::size_t bytes = 0;
  uint64_t chunk = 0;  // kCopy, kReduce
};

// Publishes this at its very end, and then nothing any more.
constexpr uint64_t kLastStep = (uint64_t{1} << 24) - 1;

struct Shape {
  // At least 2: in round 1 all are awaited, whatever there is to do. Ranks whose
  // blocks differ may have different numbers.
  uint64_t rounds;
  uint64_t chunks;          // rounds in which something is put
  uint64_t behind;          // a chunk put in round t is done with in t + behind
  std::size_t chunk_bytes;  // of the largest
};
Shape ShapeOf(const Exchange& exchange);

// The most steps a round can have.
std::size_t MostSteps(int world_size);

// Replaces `steps` by those of round `round`.
void StepsOf(const Exchange& exchange, uint64_t round, std::vector<SharedStep>& steps);

}  // namespace rankrun::comm
