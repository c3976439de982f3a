#pragma once

#include <cstddef>
#include <span>

#include "comm/core/operation.h"
#include "comm/reduce/reduction.h"

namespace rankrun::comm {

struct Block {
  std::byte* data;
  size_t bytes;
};
struct ConstBlock {
  const std::byte* data;
  size_t bytes;
};

// Data of a collective, or of a part of one, on one rank. Blocks may be empty. Complex elements
// are pairs of reals; booleans are bytes.
//
//                 inputs            outputs
//   AllReduce     one               one, the same memory
//   Reduce        one               one, which may be the input; only the root writes it
//   Broadcast     none              one, on the root also the input
//   AllGather     one               one per rank
//   Gather        one               on the root one per rank
//   Scatter       on the root one   one
//                 per rank
//   ReduceScatter one per rank      one
//   AllToAll      one per rank      one per rank
//   Barrier       none              none
struct Collective {
  Operation::Kind kind;
  int root = Operation::kNoRoot;  // rank of the backend
  std::span<const Block> outputs = {};
  std::span<const ConstBlock> inputs = {};
  Reduction reduction = {};  // of collectives that reduce

  bool is_root(int rank) const { return root == rank; }
};

}  // namespace rankrun::comm
