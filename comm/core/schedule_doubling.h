#pragma once

#include "comm/core/schedule.h"

// All-reduces among the largest power of two of ranks, p <= n. The first n - p
// pairs of ranks take part as one each: the odd rank sends all its data to the
// even one before, and receives the result after.
//
// Every element is reduced by the same tree, with the operands in the order of
// ranks, on whichever rank. So all ranks get the same bits, from both
// schedules.
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
// Communication Operations in MPICH", doi:10.1177/1094342005051521.
namespace rankrun::comm {

// Reduces outputs[0] of all ranks in place by recursive doubling. B are its
// bytes. log2 p steps, each of which sends B and reduces B. The even ranks of
// the pairs have 2 steps more, the odd ones have 2 steps.
Schedule AllReduceDoubling(const RankPlace& place);

// Returns p, the number of parts of AllReduceHalving.
int HalvingParts(int ranks);

// Reduces outputs[0 .. p - 1] of all ranks in place by recursive halving, then
// gathers them by recursive doubling (Rabenseifner's algorithm). The parts are
// contiguous in memory. B are the bytes of one part, so that p B are those of
// the data. 2 log2 p steps, which send 2 (p - 1) B and reduce (p - 1) B. The
// even ranks of the pairs have 2 steps more, the odd ones have 2 steps; these
// steps move p B each.
Schedule AllReduceHalving(const RankPlace& place);

}  // namespace rankrun::comm
