#include "comm/core/schedule_backend.h"

#include <algorithm>
#include <array>
#include <utility>
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

Blocks AllOf(const Collective& collective) {
  return {.inputs = {collective.inputs.begin(), collective.inputs.end()},
          .outputs = {collective.outputs.begin(), collective.outputs.end()}};
}

// Reduces the input of the only rank: averages and copies.
void ReduceAlone(const Collective& collective) {
  const ConstBlock& input = collective.inputs.front();
  const std::array<const void*, 1> own{input.data};
  Reduce(collective.reduction, collective.outputs.front().data, own,
         input.bytes / SizeOf(collective.reduction.dtype));
}

struct Plan {
  Schedule schedule;
  Blocks blocks;
};

Plan PlanAllReduce(const Collective& collective, const RankPlace& place,
                   const AlgorithmTable& algorithms) {
  Block data = collective.outputs.front();
  DType dtype = collective.reduction.dtype;
  auto blocks = [&](int parts) {
    return Blocks{.outputs = Parts<Block>(data.data, data.bytes / SizeOf(dtype), dtype, parts),
                  .reduction = collective.reduction};
  };
  switch (ChooseAllReduce(place.ranks, data.bytes, algorithms)) {
    case AllReduceAlgorithm::kDoubling:
      return {AllReduceDoubling(place), blocks(1)};
    case AllReduceAlgorithm::kHalving:
      return {AllReduceHalving(place), blocks(HalvingParts(place.ranks))};
    case AllReduceAlgorithm::kRing:
      break;
  }
  return {AllReduceRing(place), blocks(place.ranks)};
}

Plan PlanReduce(const Collective& collective, const RankPlace& place,
                const AlgorithmTable& algorithms) {
  ConstBlock input = collective.inputs.front();
  Block output = collective.outputs.front();
  Blocks blocks{.reduction = collective.reduction};
  bool is_tree = ChooseReduce(input.bytes, algorithms) == ReduceAlgorithm::kTree;
  int parts = is_tree ? 1 : place.ranks;
  DType dtype = collective.reduction.dtype;
  size_t count = input.bytes / SizeOf(dtype);
  blocks.inputs = Parts<ConstBlock>(input.data, count, dtype, parts);
  if (collective.root == place.rank) {
    blocks.outputs = Parts<Block>(output.data, count, dtype, parts);
  }
  blocks.scratch_bytes = Largest(blocks.inputs);
  return {is_tree ? ReduceTree(place) : ReduceRing(place), std::move(blocks)};
}

Plan PlanBroadcast(const Collective& collective, const RankPlace& place,
                   const AlgorithmTable& algorithms) {
  Block data = collective.outputs.front();
  if (ChooseBroadcast(place.ranks, data.bytes, algorithms) == BroadcastAlgorithm::kTree) {
    return {BroadcastTree(place), {.outputs = {data}}};
  }
  int pieces = ChainPieces(data.bytes, algorithms);
  return {BroadcastChain(place, pieces),
          {.outputs = Parts<Block>(data.data, data.bytes, DType::kUInt8, pieces)}};
}

// All ranks know the sizes of all blocks, so the largest one decides.
Plan PlanAllGather(const Collective& collective, const RankPlace& place,
                   const AlgorithmTable& algorithms) {
  Blocks blocks = AllOf(collective);
  switch (ChooseAllGather(place.ranks, Largest(blocks.outputs), algorithms)) {
    case ExchangeAlgorithm::kDirect:
      return {AllGatherDirect(place), std::move(blocks)};
    case ExchangeAlgorithm::kBruck:
      if (!AreEqual(blocks.outputs)) break;
      blocks.scratch_bytes = blocks.inputs.front().bytes;
      return {AllGatherBruck(place), std::move(blocks)};
    case ExchangeAlgorithm::kPairwise:
      break;
  }
  return {AllGatherPairwise(place), std::move(blocks)};
}

// A rank does not know the sizes of blocks between other ranks. But direct and
// pairwise exchanges fit together: a rank chooses the direct one only if all
// blocks that it sends and receives are so small that no send has to wait.
Plan PlanAllToAll(const Collective& collective, const RankPlace& place,
                  const AlgorithmTable& algorithms) {
  Blocks blocks = AllOf(collective);
  size_t largest = std::max(Largest(blocks.inputs), Largest(blocks.outputs));
  bool is_direct = ChooseAllToAll(largest, algorithms) == ExchangeAlgorithm::kDirect;
  return {is_direct ? AllToAllDirect(place) : AllToAllPairwise(place), std::move(blocks)};
}

Plan PlanReduceScatter(const Collective& collective, const RankPlace& place) {
  Blocks blocks = AllOf(collective);
  blocks.reduction = collective.reduction;
  blocks.scratch_bytes = Largest(blocks.inputs);
  return {ReduceScatterRing(place), std::move(blocks)};
}

// Whether no rank has data, as each of them knows.
bool IsEmpty(const Collective& collective) {
  if (MayBeUneven(collective.kind)) return false;
  auto empty = [](const auto& block) { return block.bytes == 0; };
  return std::all_of(collective.inputs.begin(), collective.inputs.end(), empty) &&
         std::all_of(collective.outputs.begin(), collective.outputs.end(), empty);
}

Plan PlanOf(const Collective& collective, const RankPlace& place,
            const AlgorithmTable& algorithms) {
  using Kind = Operation::Kind;
  switch (collective.kind) {
    case Kind::kAllReduce:
      return PlanAllReduce(collective, place, algorithms);
    case Kind::kReduce:
      return PlanReduce(collective, place, algorithms);
    case Kind::kBroadcast:
      return PlanBroadcast(collective, place, algorithms);
    case Kind::kAllGather:
      return PlanAllGather(collective, place, algorithms);
    case Kind::kGather:
      return {GatherLinear(place), AllOf(collective)};
    case Kind::kScatter:
      return {ScatterLinear(place), AllOf(collective)};
    case Kind::kReduceScatter:
      return PlanReduceScatter(collective, place);
    case Kind::kAllToAll:
      return PlanAllToAll(collective, place, algorithms);
    case Kind::kBarrier:
    case Kind::kSend:
    case Kind::kRecv:
      break;
  }
  __builtin_unreachable();
}

}  // namespace

Result<void> ScheduleBackend::Run(const Collective& collective, const Call& call) {
  const RankPlace place{.rank = rank_, .ranks = ranks_, .root = collective.root};
  if (IsEmpty(collective)) {  // all ranks must still call it
    std::byte out{};
    std::byte in{};
    return RunSchedule(call, BarrierDissemination(place),
                       {.inputs = {{&out, 1}}, .outputs = {{&in, 1}}}, false);
  }
  if (ranks_ == 1 && Reduces(collective.kind)) {
    ReduceAlone(collective);
    return RunSchedule(call, {}, {}, false);
  }
  Plan plan = PlanOf(collective, place, algorithms_);
  return RunSchedule(call, plan.schedule, plan.blocks, MayBeUneven(collective.kind));
}

}  // namespace rankrun::comm
