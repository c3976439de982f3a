#include "comm/core/transfers.h"

#include <algorithm>

namespace rankrun::comm {

Transfers TransfersOf(const DeviceCall& call, int rank, int world_size) {
  using Kind = Operation::Kind;
  auto ranks = static_cast<size_t>(world_size);
  auto root = static_cast<size_t>(std::max(call.operation.root, 0));
  bool is_root = call.operation.root == rank;
  Transfers transfers{.sends = std::vector<ConstBlock>(ranks, ConstBlock{nullptr, 0}),
                      .receives = std::vector<Block>(ranks, Block{nullptr, 0})};
  switch (call.operation.kind) {
    case Kind::kAllGather:
      transfers.sends.assign(ranks, call.inputs.front());
      transfers.receives = call.outputs;
      break;
    case Kind::kGather:
      transfers.sends[root] = call.inputs.front();
      if (is_root) transfers.receives = call.outputs;
      break;
    case Kind::kScatter:
      if (is_root) transfers.sends = call.inputs;
      transfers.receives[root] = call.outputs.front();
      break;
    default:
      transfers.sends = call.inputs;
      transfers.receives = call.outputs;
      break;
  }
  return transfers;
}

}  // namespace rankrun::comm
