#pragma once

#include <vector>

#include "comm/core/collective.h"

namespace rankrun::comm {

// Blocks of a collective that go from one rank to another unchanged, by peer. This
// rank is a peer, too.
struct Transfers {
  std::vector<ConstBlock> sends;  // empty blocks: nothing
  std::vector<Block> receives;
};

// Returns the transfers of an AllGather, Gather, Scatter or AllToAll on group rank
// `rank` of `world_size`. Pure.
Transfers TransfersOf(const Collective& collective, int rank, int world_size);

}  // namespace rankrun::comm
