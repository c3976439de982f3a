#include "comm/core/schedule_bruck.h"

#include <algorithm>

#include "comm/core/steps.h"

namespace rankrun::comm {
namespace {

using steps::Copy;
using steps::Input;
using steps::Output;
using steps::Scratch;
using steps::Shifted;

}  // namespace

// scratch[i] is the block of the rank i further on the ring.
Schedule AllGatherBruck(const RankPlace& place) {
  Schedule steps{Copy(Input(0), Scratch(0))};
  for (int have = 1; have < place.ranks; have *= 2) {
    int count = std::min(have, place.ranks - have);
    steps.push_back({.from = Scratch(0, count),
                     .to = Scratch(have, count),
                     .send_to = Shifted(place, -have),
                     .receive_from = Shifted(place, have)});
  }
  for (int i = 0; i < place.ranks; ++i) {
    steps.push_back(Copy(Scratch(i), Output(Shifted(place, i))));
  }
  return steps;
}

}  // namespace rankrun::comm
