#include "comm/core/schedule_bruck.h"

#include <algorithm>
#include <vector>

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

// A block with a way of i ranks ahead of it on the ring travels in the steps
// whose bits are set in i. Each rank has one block for each i at any time.
Schedule AllToAllBruck(const RankPlace& place) {
  std::vector<Part> blocks;  // by i
  for (int i = 0; i < place.ranks; ++i) blocks.push_back(Input(Shifted(place, i)));
  Schedule steps;
  int unused = place.ranks / 2;  // first unused scratch block; below are the blocks to send
  for (int bit = 1; bit < place.ranks; bit *= 2) {
    int count = 0;
    for (int i = bit; i < place.ranks; ++i) {
      if ((i & bit) == 0) continue;
      Part& block = blocks[static_cast<size_t>(i)];
      steps.push_back(Copy(block, Scratch(count)));
      block = Scratch(unused + count);
      count += 1;
    }
    steps.push_back({.from = Scratch(0, count),
                     .to = Scratch(unused, count),
                     .send_to = Shifted(place, bit),
                     .receive_from = Shifted(place, -bit)});
    unused += count;
  }
  for (int i = 0; i < place.ranks; ++i) {
    steps.push_back(Copy(blocks[static_cast<size_t>(i)], Output(Shifted(place, -i))));
  }
  return steps;
}

}  // namespace rankrun::comm
