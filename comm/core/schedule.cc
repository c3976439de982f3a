#include "comm/core/schedule.h"

#include <algorithm>

#include "comm/core/steps.h"

namespace rankrun::comm {
namespace {

using steps::Copy;
using steps::Input;
using steps::Output;
using steps::RankAt;
using steps::Receive;
using steps::Relative;
using steps::Scratch;
using steps::Send;
using steps::Shifted;

// Target of the partial result of ring step `k`; the last one is `result`.
Part Partial(const RankPlace& place, int k, Part result) {
  return k == place.ranks - 2 ? result : Scratch(k % 2);
}

// Reduce-scatter on a ring: part i travels from rank i + 1 around the ring.
// Each rank adds its input, until the part is complete on rank i.
Schedule ReduceScatterSteps(const RankPlace& place, Part result) {
  if (place.ranks == 1) return {Copy(Input(0), result)};
  Schedule steps;
  for (int k = 0; k < place.ranks - 1; ++k) {
    steps.push_back({.from = k == 0 ? Input(Shifted(place, -1)) : Partial(place, k - 1, result),
                     .to = Partial(place, k, result),
                     .send_to = Shifted(place, 1),
                     .receive_from = Shifted(place, -1),
                     .with = Input(Shifted(place, -k - 2)),
                     .completes = k == place.ranks - 2});
  }
  return steps;
}

int EndInScratch(const Part& part) {
  return part.place == Part::Place::kScratch ? part.index + part.count : 0;
}

}  // namespace

int ScratchBlocks(const Schedule& schedule) {
  int blocks = 0;
  for (const Step& step : schedule) {
    blocks = std::max({blocks, EndInScratch(step.from), EndInScratch(step.to)});
    if (step.with) blocks = std::max(blocks, EndInScratch(*step.with));
  }
  return blocks;
}

Schedule AllGatherPairwise(const RankPlace& place) {
  Schedule steps{Copy(Input(0), Output(place.rank))};
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back({.from = Input(0),
                     .to = Output(Shifted(place, -k)),
                     .send_to = Shifted(place, k),
                     .receive_from = Shifted(place, -k)});
  }
  return steps;
}

Schedule AllToAllPairwise(const RankPlace& place) {
  Schedule steps{Copy(Input(place.rank), Output(place.rank))};
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back({.from = Input(Shifted(place, k)),
                     .to = Output(Shifted(place, -k)),
                     .send_to = Shifted(place, k),
                     .receive_from = Shifted(place, -k)});
  }
  return steps;
}

Schedule GatherLinear(const RankPlace& place) {
  if (place.rank != place.root) return {Send(Input(0), place.root)};
  Schedule steps{Copy(Input(0), Output(place.root))};
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back(Receive(Output(Shifted(place, k)), Shifted(place, k)));
  }
  return steps;
}

Schedule ScatterLinear(const RankPlace& place) {
  if (place.rank != place.root) return {Receive(Output(0), place.root)};
  Schedule steps{Copy(Input(place.root), Output(0))};
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back(Send(Input(Shifted(place, k)), Shifted(place, k)));
  }
  return steps;
}

Schedule BroadcastTree(const RankPlace& place) {
  int relative = Relative(place);
  Schedule steps;
  // Relative ranks below `have` own the data; their number doubles in each
  // step.
  for (int have = 1; have < place.ranks; have *= 2) {
    if (relative < have) {
      if (relative + have < place.ranks) {
        steps.push_back(Send(Output(0), RankAt(place, relative + have)));
      }
    } else if (relative < 2 * have) {
      steps.push_back(Receive(Output(0), RankAt(place, relative - have)));
    }
  }
  return steps;
}

Schedule AllReduceRing(const RankPlace& place) {
  Schedule steps;
  for (int k = 0; k < place.ranks - 1; ++k) {
    Part part = Output(Shifted(place, -k - 2));
    steps.push_back({.from = Output(Shifted(place, -k - 1)),
                     .to = part,
                     .send_to = Shifted(place, 1),
                     .receive_from = Shifted(place, -1),
                     .with = part,
                     .completes = k == place.ranks - 2});
  }
  for (int k = 0; k < place.ranks - 1; ++k) {
    steps.push_back({.from = Output(Shifted(place, -k)),
                     .to = Output(Shifted(place, -k - 1)),
                     .send_to = Shifted(place, 1),
                     .receive_from = Shifted(place, -1)});
  }
  return steps;
}

Schedule ReduceScatterRing(const RankPlace& place) { return ReduceScatterSteps(place, Output(0)); }

Schedule ReduceRing(const RankPlace& place) {
  bool at_root = place.rank == place.root;
  Schedule steps = ReduceScatterSteps(place, at_root ? Output(place.root) : Scratch(2));
  if (!at_root) {
    steps.push_back(Send(Scratch(2), place.root));
    return steps;
  }
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back(Receive(Output(Shifted(place, k)), Shifted(place, k)));
  }
  return steps;
}

Schedule BarrierDissemination(const RankPlace& place) {
  Schedule steps;
  for (int distance = 1; distance < place.ranks; distance *= 2) {
    steps.push_back({.from = Input(0),
                     .to = Output(0),
                     .send_to = Shifted(place, distance),
                     .receive_from = Shifted(place, -distance)});
  }
  return steps;
}

}  // namespace rankrun::comm
