#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rankrun::comm {

// One of the blocks of memory that a schedule works on.
struct Part {
  enum class Place : uint8_t { kInput, kOutput, kScratch };
  Place place = Place::kInput;
  int index = 0;

  bool operator==(const Part&) const = default;
};

// What one rank does next. A copy: `to` becomes `from`. An exchange: `from` is
// sent to `send_to` while `to` is received from `receive_from`, or what comes
// is reduced with `with` into `to`.
struct Step {
  enum class Kind : uint8_t { kCopy, kExchange };
  static constexpr int kNobody = -1;

  Kind kind = Kind::kExchange;
  Part from = {};
  Part to = {};
  int send_to = kNobody;
  int receive_from = kNobody;
  std::optional<Part> with = {};
  bool completes = false;  // of what is reduced: all ranks' parts are in it
};

// The place of a rank in a collective.
struct Seat {
  int rank;
  int ranks;
  int root = 0;
};

// A collective as one rank's list of steps. Pure data: who carries it out
// brings the memory. Between two ranks messages arrive in the order sent; a rank
// may send before the other receives, but need not be able to.
using Schedule = std::vector<Step>;

// With n ranks, B bytes at each place, per rank:

// outputs[i] becomes rank i's inputs[0]. n - 1 steps, sends (n - 1) B.
Schedule AllGatherPairwise(const Seat& seat);
// outputs[i] becomes rank i's inputs[this rank]. n - 1 steps, sends (n - 1) B.
Schedule AllToAllPairwise(const Seat& seat);
// The root's outputs[i] becomes rank i's inputs[0]. The root takes (n - 1) B.
Schedule GatherLinear(const Seat& seat);
// outputs[0] becomes the root's inputs[rank]. The root sends (n - 1) B.
Schedule ScatterLinear(const Seat& seat);
// outputs[0] becomes that of the root. A binomial tree: log2 n steps; a rank
// sends up to log2 n B.
Schedule BroadcastTree(const Seat& seat);
// outputs[i] holds this rank's part i, then all ranks' reduced. A ring: 2 (n - 1)
// steps, sends 2 (n - 1) B. One rank computes each part, so all have the same bits.
Schedule AllReduceRing(const Seat& seat);
// outputs[0] becomes all ranks' inputs[this rank] reduced; inputs stay. A ring:
// n - 1 steps, sends (n - 1) B. Needs scratch[0] and [1], as large as any input.
Schedule ReduceScatterRing(const Seat& seat);
// The root's outputs[i] becomes all ranks' inputs[i] reduced; it may be its
// inputs[i]. As ReduceScatterRing, then n - 1 parts go to the root. Needs
// scratch[2] as well.
Schedule ReduceRing(const Seat& seat);
// No rank leaves before all have entered: dissemination, log2 n steps. inputs[0]
// and outputs[0] are one byte, of no meaning.
Schedule BarrierDissemination(const Seat& seat);

}  // namespace rankrun::comm
