#include "comm/core/schedule_direct.h"

#include "comm/core/steps.h"

namespace rankrun::comm {
namespace {

using steps::Copy;
using steps::Input;
using steps::Output;
using steps::Receive;
using steps::Send;
using steps::Shifted;

// Receives in the order in which the other ranks send to this one.
void ReceiveFromAll(const RankPlace& place, Schedule& steps) {
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back(Receive(Output(Shifted(place, -k)), Shifted(place, -k)));
  }
}

}  // namespace

Schedule AllGatherDirect(const RankPlace& place) {
  Schedule steps{Copy(Input(0), Output(place.rank))};
  for (int k = 1; k < place.ranks; ++k) steps.push_back(Send(Input(0), Shifted(place, k)));
  ReceiveFromAll(place, steps);
  return steps;
}

Schedule AllToAllDirect(const RankPlace& place) {
  Schedule steps{Copy(Input(place.rank), Output(place.rank))};
  for (int k = 1; k < place.ranks; ++k) {
    steps.push_back(Send(Input(Shifted(place, k)), Shifted(place, k)));
  }
  ReceiveFromAll(place, steps);
  return steps;
}

}  // namespace rankrun::comm
