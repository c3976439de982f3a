#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

// Contents of the buffers of a measurement, chosen so that wrong results are
// visible: small numbers that depend on the sender, the receiver, the round and
// the index. They repeat after a prime number of elements, so a part in a wrong
// place differs in most elements.
namespace rankrun::bench {

constexpr size_t kPeriod = 1021;  // elements

// Origin of the data.
struct Source {
  int from = 0;
  int to = 0;  // receiver, if the data depends on it
  int round = 0;
};

// Returns one period of elements as bytes of the given type, with values that
// fit `op`.
std::vector<std::byte> Tile(DType dtype, Source source, ReduceOp::Kind op);

// Returns the reduction of the tiles of all ranks `from` 0..ranks-1. Exact,
// except for kAvg and for results that the type cannot represent.
std::vector<std::byte> ReducedTile(DType dtype, ReduceOp::Kind op, int ranks, Source source);

// Fills the buffer with repetitions of the tile.
void Fill(std::span<std::byte> buffer, std::span<const std::byte> tile);

// Returns the number of elements that differ from the repeated tile by more
// than rounding.
int64_t CountWrong(DType dtype, std::span<const std::byte> buffer, std::span<const std::byte> tile);

}  // namespace rankrun::bench
