#include "comm/core/schedule_backend.h"

#include <algorithm>
#include <array>
#include <vector>

#include "comm/core/schedule_bruck.h"
#include "comm/core/schedule_direct.h"
#include "comm/core/schedule_doubling.h"
#include "comm/core/schedule_rooted.h"

namespace rankrun::comm {
namespace {

// Returns the first element of a part when `count` elements are split among the
// ranks.
size_t PartBegin(size_t count, int part, int ranks) {
  auto n = static_cast<size_t>(ranks);
  auto i = static_cast<size_t>(part);
  return count / n * i + std::min(count % n, i);
}

template <typename Block, typename Byte>
std::vector<Block> Parts(Byte* data, size_t count, DType dtype, int ranks) {
  std::vector<Block> parts;
  size_t size = SizeOf(dtype);
  for (int i = 0; i < ranks; ++i) {
    size_t begin = PartBegin(count, i, ranks) * size;
    parts.push_back({data + begin, PartBegin(count, i + 1, ranks) * size - begin});
  }
  return parts;
}

template <typename Block>
size_t Largest(const std::vector<Block>& blocks) {
  size_t largest = 0;
  for (const Block& block : blocks) largest = std::max(largest, block.bytes);
  return largest;
}

bool AreEqual(const std::vector<Block>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](const Block& block) { return block.bytes == blocks.front().bytes; });
}

template <typename Block>
std::vector<Block> ToVector(std::span<const Block> blocks) {
  return {blocks.begin(), blocks.end()};
}

// Reduces the input of the only rank: averages and copies.
void ReduceAlone(const Reduction& reduction, std::byte* output, const std::byte* input,
                 size_t count) {
  const std::array<const void*, 1> own{input};
  Reduce(reduction, output, own, count);
}

}  // namespace

Result<void> ScheduleBackend::AllReduce(std::byte* data, size_t count, const Reduction& reduction,
                                        const Call& call) {
  if (count == 0) return RunEmpty(call);
  if (ranks_ == 1) ReduceAlone(reduction, data, data, count);
  auto blocks = [&](int parts) {
    return Blocks{.outputs = Parts<Block>(data, count, reduction.dtype, parts),
                  .reduction = reduction};
  };
  switch (ChooseAllReduce(ranks_, count * SizeOf(reduction.dtype), algorithms_)) {
    case AllReduceAlgorithm::kDoubling:
      return Run(call, AllReduceDoubling(PlaceIn(call)), blocks(1), false);
    case AllReduceAlgorithm::kHalving:
      return Run(call, AllReduceHalving(PlaceIn(call)), blocks(HalvingParts(ranks_)), false);
    case AllReduceAlgorithm::kRing:
      break;
  }
  return Run(call, AllReduceRing(PlaceIn(call)), blocks(ranks_), false);
}

Result<void> ScheduleBackend::Reduce(std::byte* output, const std::byte* input, size_t count,
                                     const Reduction& reduction, const Call& call) {
  if (count == 0) return RunEmpty(call);
  if (ranks_ == 1) {
    ReduceAlone(reduction, output, input, count);
    return Run(call, {}, {}, false);
  }
  size_t bytes = count * SizeOf(reduction.dtype);
  if (ChooseReduce(bytes, algorithms_) == ReduceAlgorithm::kTree) {
    return ReduceByTree(output, {input, bytes}, reduction, call);
  }
  Blocks blocks{.inputs = Parts<ConstBlock>(input, count, reduction.dtype, ranks_),
                .reduction = reduction};
  if (call.root == rank_) {
    blocks.outputs = Parts<Block>(output, count, reduction.dtype, ranks_);
  }
  blocks.scratch_bytes = Largest(blocks.inputs);
  return Run(call, ReduceRing(PlaceIn(call)), blocks, false);
}

Result<void> ScheduleBackend::ReduceByTree(std::byte* output, ConstBlock input,
                                           const Reduction& reduction, const Call& call) {
  Blocks blocks{.inputs = {input}, .scratch_bytes = input.bytes, .reduction = reduction};
  if (call.root == rank_) blocks.outputs = {{output, input.bytes}};
  return Run(call, ReduceTree(PlaceIn(call)), blocks, false);
}

Result<void> ScheduleBackend::Broadcast(Block data, const Call& call) {
  if (data.bytes == 0) return RunEmpty(call);
  if (ChooseBroadcast(ranks_, data.bytes, algorithms_) == BroadcastAlgorithm::kChain) {
    return BroadcastByChain(data, call);
  }
  return Run(call, BroadcastTree(PlaceIn(call)), {.outputs = {data}}, false);
}

Result<void> ScheduleBackend::BroadcastByChain(Block data, const Call& call) {
  int pieces = ChainPieces(data.bytes, algorithms_);
  return Run(call, BroadcastChain(PlaceIn(call), pieces),
             {.outputs = Parts<Block>(data.data, data.bytes, DType::kUInt8, pieces)}, false);
}

// All ranks know the sizes of all blocks, so the largest one decides.
Result<void> ScheduleBackend::AllGather(std::span<const Block> outputs, ConstBlock input,
                                        const Call& call) {
  Blocks blocks{.inputs = {input}, .outputs = ToVector(outputs)};
  switch (ChooseAllGather(ranks_, Largest(blocks.outputs), algorithms_)) {
    case ExchangeAlgorithm::kDirect:
      return Run(call, AllGatherDirect(PlaceIn(call)), blocks, true);
    case ExchangeAlgorithm::kBruck:
      if (!AreEqual(blocks.outputs)) break;
      blocks.scratch_bytes = input.bytes;
      return Run(call, AllGatherBruck(PlaceIn(call)), blocks, true);
    case ExchangeAlgorithm::kPairwise:
      break;
  }
  return Run(call, AllGatherPairwise(PlaceIn(call)), blocks, true);
}

Result<void> ScheduleBackend::Gather(std::span<const Block> outputs, ConstBlock input,
                                     const Call& call) {
  return Run(call, GatherLinear(PlaceIn(call)), {.inputs = {input}, .outputs = ToVector(outputs)},
             true);
}

Result<void> ScheduleBackend::Scatter(Block output, std::span<const ConstBlock> inputs,
                                      const Call& call) {
  return Run(call, ScatterLinear(PlaceIn(call)), {.inputs = ToVector(inputs), .outputs = {output}},
             true);
}

Result<void> ScheduleBackend::ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                                            const Reduction& reduction, const Call& call) {
  Blocks blocks{.inputs = ToVector(inputs), .outputs = {output}, .reduction = reduction};
  blocks.scratch_bytes = Largest(blocks.inputs);
  if (blocks.scratch_bytes == 0) return RunEmpty(call);
  auto ok = Run(call, ReduceScatterRing(PlaceIn(call)), blocks, false);
  if (ok && ranks_ == 1) {
    ReduceAlone(reduction, output.data, output.data, output.bytes / SizeOf(reduction.dtype));
  }
  return ok;
}

// A rank does not know the sizes of blocks between other ranks. But direct and
// pairwise exchanges fit together: a rank chooses the direct one only if all
// blocks that it sends and receives are so small that no send has to wait.
Result<void> ScheduleBackend::AllToAll(std::span<const Block> outputs,
                                       std::span<const ConstBlock> inputs, const Call& call) {
  Blocks blocks{.inputs = ToVector(inputs), .outputs = ToVector(outputs)};
  size_t largest = std::max(Largest(blocks.inputs), Largest(blocks.outputs));
  bool is_direct = ChooseAllToAll(largest, algorithms_) == ExchangeAlgorithm::kDirect;
  return Run(call, is_direct ? AllToAllDirect(PlaceIn(call)) : AllToAllPairwise(PlaceIn(call)),
             blocks, true);
}

Result<void> ScheduleBackend::Barrier(const Call& call) { return RunEmpty(call); }

Result<void> ScheduleBackend::RunEmpty(const Call& call) {
  std::byte out{};
  std::byte in{};
  return Run(call, BarrierDissemination(PlaceIn(call)),
             {.inputs = {{&out, 1}}, .outputs = {{&in, 1}}}, false);
}

}  // namespace rankrun::comm
