#include "comm/core/pair_sizes.h"

#include <string>

#include "comm/core/transfers.h"

namespace rankrun::comm {
namespace {

template <typename BlockType, typename Byte>
std::vector<BlockType> OnePerRank(std::vector<PairSizes>& sizes) {
  std::vector<BlockType> blocks;
  for (PairSizes& each : sizes) blocks.push_back({reinterpret_cast<Byte*>(&each), sizeof each});
  return blocks;
}

Error OtherSizes(DType dtype, int sender, uint64_t sent, int receiver, uint64_t wanted) {
  size_t element = SizeOf(dtype);
  return {ErrorCode::kMismatch, "rank " + std::to_string(sender) + " sends " +
                                    std::to_string(sent / element) + " elements, and rank " +
                                    std::to_string(receiver) + " has room for " +
                                    std::to_string(wanted / element)};
}

}  // namespace

std::vector<PairSizes> SizesOf(const Collective& collective, int rank, int ranks) {
  std::vector<PairSizes> sizes;
  if (!MayBeUneven(collective.kind)) return sizes;
  Transfers all = TransfersOf(collective, rank, ranks);
  for (size_t r = 0; r < all.sends.size(); ++r) {
    sizes.push_back({.sent = all.sends[r].bytes, .wanted = all.receives[r].bytes});
  }
  return sizes;
}

Result<void> CompareCalls(const Operation& operation, std::vector<PairSizes> mine, int rank,
                          const std::vector<int>& global_ranks,
                          const std::function<Result<void>(const Collective&)>& run) {
  if (mine.empty()) return run({.kind = Operation::Kind::kBarrier});
  std::vector<PairSizes> theirs(mine.size());
  auto inputs = OnePerRank<ConstBlock, const std::byte>(mine);
  auto outputs = OnePerRank<Block, std::byte>(theirs);
  auto ok = run({.kind = Operation::Kind::kAllToAll, .outputs = outputs, .inputs = inputs});
  if (!ok) return ok;
  int own = global_ranks[static_cast<size_t>(rank)];
  for (size_t r = 0; r < theirs.size(); ++r) {
    int other = global_ranks[r];
    if (theirs[r].sent != mine[r].wanted) {
      return OtherSizes(operation.dtype, other, theirs[r].sent, own, mine[r].wanted);
    }
    if (theirs[r].wanted != mine[r].sent) {
      return OtherSizes(operation.dtype, own, mine[r].sent, other, theirs[r].wanted);
    }
  }
  return {};
}

}  // namespace rankrun::comm
