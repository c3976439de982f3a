#include "comm/core/transfers.h"

#include <algorithm>

namespace rankrun::comm {

Transfers TransfersOf(const Collective& collective, int rank, int world_size) {
  using Kind = Operation::Kind;
  auto ranks = static_cast<size_t>(world_size);
  auto root = static_cast<size_t>(std::max(collective.root, 0));
  Transfers transfers{.sends = std::vector<ConstBlock>(ranks, ConstBlock{nullptr, 0}),
                      .receives = std::vector<Block>(ranks, Block{nullptr, 0})};
  auto send_all = [&] {
    transfers.sends.assign(collective.inputs.begin(), collective.inputs.end());
  };
  auto receive_all = [&] {
    transfers.receives.assign(collective.outputs.begin(), collective.outputs.end());
  };
  switch (collective.kind) {
    case Kind::kAllGather:
      transfers.sends.assign(ranks, collective.inputs.front());
      receive_all();
      break;
    case Kind::kGather:
      transfers.sends[root] = collective.inputs.front();
      if (collective.is_root(rank)) receive_all();
      break;
    case Kind::kScatter:
      if (collective.is_root(rank)) send_all();
      transfers.receives[root] = collective.outputs.front();
      break;
    default:
      send_all();
      receive_all();
      break;
  }
  return transfers;
}

}  // namespace rankrun::comm
