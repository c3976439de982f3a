#pragma once

#include "comm/core/schedule.h"

// Reduction of small data to a root, and broadcast of large data from a root.
namespace rankrun::comm {

// Reduces inputs[0] of all ranks to the root's outputs[0], which may be its
// inputs[0], by a binomial tree. The operands are in the order of ranks from
// the root on. ceil(log2 n) rounds; the root receives and reduces one B in
// each, the other ranks send B once. Ranks that receive, other than the root,
// need scratch[0].
Schedule ReduceTree(const RankPlace& place);

// Copies the root's outputs[0 .. pieces - 1] to all ranks along a chain from
// the root on. A rank receives a piece while it sends the piece before it, so
// the last rank has all data after n - 2 + pieces rounds. The root and the last
// rank have `pieces` steps, the others one more. A rank sends all data once,
// except the last one.
Schedule BroadcastChain(const RankPlace& place, int pieces);

}  // namespace rankrun::comm
