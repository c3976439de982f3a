#include "comm/core/schedule_rooted.h"

#include "comm/core/steps.h"

namespace rankrun::comm {

using steps::Copy;
using steps::Input;
using steps::Output;
using steps::RankAt;
using steps::Relative;
using steps::Scratch;
using steps::Send;

Schedule ReduceTree(const RankPlace& place) {
  int relative = Relative(place);
  Part sum = Input(0);  // of the ranks received from, and this one
  Part result = relative == 0 ? Output(0) : Scratch(0);
  if (place.ranks == 1) return {Copy(sum, result)};
  Schedule steps;
  for (int distance = 1; distance < place.ranks; distance *= 2) {
    if ((relative & distance) != 0) {
      steps.push_back(Send(sum, RankAt(place, relative - distance)));
      return steps;
    }
    if (relative + distance >= place.ranks) continue;
    steps.push_back({.to = result,
                     .receive_from = RankAt(place, relative + distance),
                     .with = sum,
                     .received_first = false,
                     .completes = 2 * distance >= place.ranks});  // at the root
    sum = result;
  }
  return steps;
}

Schedule BroadcastChain(const RankPlace& place, int pieces) {
  int relative = Relative(place);
  bool is_last = relative == place.ranks - 1;
  Schedule steps;
  for (int i = 0; i <= pieces; ++i) {
    Step step;
    if (relative > 0 && i < pieces) {
      step.to = Output(i);
      step.receive_from = RankAt(place, relative - 1);
    }
    if (!is_last && i > 0) {
      step.from = Output(i - 1);
      step.send_to = RankAt(place, relative + 1);
    }
    bool moves = step.send_to != Step::kNobody || step.receive_from != Step::kNobody;
    if (moves) steps.push_back(step);
  }
  return steps;
}

}  // namespace rankrun::comm
