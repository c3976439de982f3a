#include "comm/schedule.h"

namespace rankrun::comm {
namespace {

Part Input(int index) { return {Part::Place::kInput, index}; }
Part Output(int index) { return {Part::Place::kOutput, index}; }
Part Scratch(int index) { return {Part::Place::kScratch, index}; }

Step Copy(Part from, Part to) { return {.kind = Step::Kind::kCopy, .from = from, .to = to}; }
Step Send(Part from, int to) { return {.from = from, .send_to = to}; }
Step Receive(Part to, int from) { return {.to = to, .receive_from = from}; }

// The rank `steps` places further on the ring; `steps` may be negative.
int Further(const Seat& seat, int steps) {
  const int place = (seat.rank + steps) % seat.ranks;
  return place < 0 ? place + seat.ranks : place;
}

// Where the partial result of step `k` of a ring goes, the last one to `result`.
Part Partial(const Seat& seat, int k, Part result) {
  return k == seat.ranks - 2 ? result : Scratch(k % 2);
}

// The first half of what reduces: part i travels round the ring from rank i + 1
// and gathers every rank's share until it is complete on rank i.
Schedule ReduceRound(const Seat& seat, Part result) {
  if (seat.ranks == 1) return {Copy(Input(0), result)};
  Schedule steps;
  for (int k = 0; k < seat.ranks - 1; ++k) {
    steps.push_back({.from = k == 0 ? Input(Further(seat, -1)) : Partial(seat, k - 1, result),
                     .to = Partial(seat, k, result),
                     .send_to = Further(seat, 1),
                     .receive_from = Further(seat, -1),
                     .with = Input(Further(seat, -k - 2)),
                     .completes = k == seat.ranks - 2});
  }
  return steps;
}

}  // namespace

Schedule AllGatherPairwise(const Seat& seat) {
  Schedule steps{Copy(Input(0), Output(seat.rank))};
  for (int k = 1; k < seat.ranks; ++k) {
    steps.push_back({.from = Input(0),
                     .to = Output(Further(seat, -k)),
                     .send_to = Further(seat, k),
                     .receive_from = Further(seat, -k)});
  }
  return steps;
}

Schedule AllToAllPairwise(const Seat& seat) {
  Schedule steps{Copy(Input(seat.rank), Output(seat.rank))};
  for (int k = 1; k < seat.ranks; ++k) {
    steps.push_back({.from = Input(Further(seat, k)),
                     .to = Output(Further(seat, -k)),
                     .send_to = Further(seat, k),
                     .receive_from = Further(seat, -k)});
  }
  return steps;
}

Schedule GatherLinear(const Seat& seat) {
  if (seat.rank != seat.root) return {Send(Input(0), seat.root)};
  Schedule steps{Copy(Input(0), Output(seat.root))};
  for (int k = 1; k < seat.ranks; ++k) {
    steps.push_back(Receive(Output(Further(seat, k)), Further(seat, k)));
  }
  return steps;
}

Schedule ScatterLinear(const Seat& seat) {
  if (seat.rank != seat.root) return {Receive(Output(0), seat.root)};
  Schedule steps{Copy(Input(seat.root), Output(0))};
  for (int k = 1; k < seat.ranks; ++k) {
    steps.push_back(Send(Input(Further(seat, k)), Further(seat, k)));
  }
  return steps;
}

Schedule BroadcastTree(const Seat& seat) {
  const int place = (seat.rank - seat.root + seat.ranks) % seat.ranks;  // 0: the root
  const auto rank_at = [&](int at) { return (at + seat.root) % seat.ranks; };
  Schedule steps;
  // Who has it doubles with each step: places below `have`.
  for (int have = 1; have < seat.ranks; have *= 2) {
    if (place < have) {
      if (place + have < seat.ranks) steps.push_back(Send(Output(0), rank_at(place + have)));
    } else if (place < 2 * have) {
      steps.push_back(Receive(Output(0), rank_at(place - have)));
    }
  }
  return steps;
}

Schedule AllReduceRing(const Seat& seat) {
  Schedule steps;
  for (int k = 0; k < seat.ranks - 1; ++k) {
    const Part part = Output(Further(seat, -k - 2));
    steps.push_back({.from = Output(Further(seat, -k - 1)),
                     .to = part,
                     .send_to = Further(seat, 1),
                     .receive_from = Further(seat, -1),
                     .with = part,
                     .completes = k == seat.ranks - 2});
  }
  for (int k = 0; k < seat.ranks - 1; ++k) {
    steps.push_back({.from = Output(Further(seat, -k)),
                     .to = Output(Further(seat, -k - 1)),
                     .send_to = Further(seat, 1),
                     .receive_from = Further(seat, -1)});
  }
  return steps;
}

Schedule ReduceScatterRing(const Seat& seat) { return ReduceRound(seat, Output(0)); }

Schedule ReduceRing(const Seat& seat) {
  const bool at_root = seat.rank == seat.root;
  Schedule steps = ReduceRound(seat, at_root ? Output(seat.root) : Scratch(2));
  if (!at_root) {
    steps.push_back(Send(Scratch(2), seat.root));
    return steps;
  }
  for (int k = 1; k < seat.ranks; ++k) {
    steps.push_back(Receive(Output(Further(seat, k)), Further(seat, k)));
  }
  return steps;
}

Schedule BarrierDissemination(const Seat& seat) {
  Schedule steps;
  for (int distance = 1; distance < seat.ranks; distance *= 2) {
    steps.push_back({.from = Input(0),
                     .to = Output(0),
                     .send_to = Further(seat, distance),
                     .receive_from = Further(seat, -distance)});
  }
  return steps;
}

}  // namespace rankrun::comm
