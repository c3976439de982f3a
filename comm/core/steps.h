#pragma once

#include "comm/core/schedule.h"

// Names for the parts, steps and ranks of which schedules consist.
namespace rankrun::comm::steps {

inline Part Input(int index, int count = 1) { return {Part::Place::kInput, index, count}; }
inline Part Output(int index, int count = 1) { return {Part::Place::kOutput, index, count}; }
inline Part Scratch(int index, int count = 1) { return {Part::Place::kScratch, index, count}; }

inline Step Copy(const Part& from, const Part& to) {
  return {.kind = Step::Kind::kCopy, .from = from, .to = to};
}
inline Step Send(const Part& from, int to) { return {.from = from, .send_to = to}; }
inline Step Receive(const Part& to, int from) { return {.to = to, .receive_from = from}; }

// Returns the rank `steps` further on the ring; `steps` may be negative.
inline int Shifted(const RankPlace& place, int steps) {
  int rank = (place.rank + steps) % place.ranks;
  return rank < 0 ? rank + place.ranks : rank;
}

// Returns the distance on the ring from the root to this rank.
inline int Relative(const RankPlace& place) {
  return (place.rank - place.root + place.ranks) % place.ranks;
}

// Returns the rank at a distance from the root.
inline int RankAt(const RankPlace& place, int relative) {
  return (place.root + relative) % place.ranks;
}

}  // namespace rankrun::comm::steps
