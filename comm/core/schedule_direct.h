#pragma once

#include "comm/core/schedule.h"

// Exchanges of small blocks in one round trip: each rank sends all its blocks,
// then it receives. The transport must complete a send before its receive
// starts, so its buffers must have room for n - 1 blocks per rank. On other
// transports the ranks wait for each other for ever.
namespace rankrun::comm {

// Copies rank i's inputs[0] to outputs[i]. n - 1 sends, then n - 1 receives;
// (n - 1) B sent.
Schedule AllGatherDirect(const RankPlace& place);
// Copies rank i's inputs[this rank] to outputs[i]. n - 1 sends, then n - 1
// receives; (n - 1) B sent.
Schedule AllToAllDirect(const RankPlace& place);

}  // namespace rankrun::comm
