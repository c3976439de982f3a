#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

// What the buffers of a measurement contain, so that wrong results are seen:
// small numbers that follow from who sent them, for whom, in which round and
// where in the buffer. They repeat after a prime number of elements, so a part
// that is put into a wrong place differs in most elements.
namespace rankrun::bench {

constexpr std::size_t kPeriod = 1021;  // elements

// Whose data it is.
struct Source {
  int from = 0;
  int to = 0;  // of what differs by receiver
  int round = 0;
};

// One period of elements, as bytes of the given type, small enough for `op`.
std::vector<std::byte> Tile(DType dtype, Source source, ReduceOp::Kind op);

// What the reduction of the tiles of all ranks `from` 0..ranks-1 is. Exact, but
// for kAvg and for what the type cannot hold.
std::vector<std::byte> ReducedTile(DType dtype, ReduceOp::Kind op, int ranks, Source source);

// Repeats the tile all over the buffer.
void Fill(std::span<std::byte> buffer, std::span<const std::byte> tile);

// How many elements differ from the repeated tile by more than rounding.
int64_t CountWrong(DType dtype, std::span<const std::byte> buffer, std::span<const std::byte> tile);

}  // namespace rankrun::bench
