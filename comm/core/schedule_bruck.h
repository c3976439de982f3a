#pragma once

#include "comm/core/schedule.h"

// Exchanges of small blocks among many ranks: few messages, each with several
// blocks. All blocks of all ranks must have the same size, which is also that
// of the scratch blocks. Each rank sends ceil(log2 n) messages; the other steps
// are copies within a rank.
// Source: J. Bruck et al., "Efficient Algorithms for All-to-All Communications
// in Multiport Message-Passing Systems", doi:10.1109/71.642949.
namespace rankrun::comm {

// Copies rank i's inputs[0] to outputs[i]. (n - 1) B sent. Copies n + 1 blocks.
// Needs n scratch blocks.
Schedule AllGatherBruck(const RankPlace& place);

// Copies rank i's inputs[this rank] to outputs[i]. m is the number of bits that
// are set in all of 1 .. n - 1 together, at most n / 2 ceil(log2 n). m B sent.
// Copies m + n blocks. Needs m + n / 2 scratch blocks.
Schedule AllToAllBruck(const RankPlace& place);

}  // namespace rankrun::comm
