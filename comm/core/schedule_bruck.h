#pragma once

#include "comm/core/schedule.h"

// Source: J. Bruck et al., "Efficient Algorithms for All-to-All Communications
// in Multiport Message-Passing Systems", doi:10.1109/71.642949.
namespace rankrun::comm {

// Copies rank i's inputs[0] to outputs[i], for small blocks among many ranks: few
// messages, each with several blocks. All blocks of all ranks must have the same
// size, which is also that of the scratch blocks. ceil(log2 n) messages,
// (n - 1) B sent; the other steps copy n + 1 blocks. Needs n scratch blocks.
Schedule AllGatherBruck(const RankPlace& place);

}  // namespace rankrun::comm
