#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rankrun::comm {

// Memory that a schedule refers to: the block `index`, or `count` blocks from
// there on that are contiguous in memory. Scratch blocks are contiguous and
// equal in size.
struct Part {
  enum class Place : uint8_t { kInput, kOutput, kScratch };
  Place place = Place::kInput;
  int index = 0;
  int count = 1;

  bool operator==(const Part&) const = default;
};

// One step of a rank. kCopy copies `from` to `to`. kExchange sends `from` to
// `send_to` and receives `to` from `receive_from`; with `with`, it reduces the
// received data and `with` into `to`. `to` is disjoint from `from`, or equal to
// it in a step that reduces: the executor then receives into staging memory,
// waits until the send is complete, and reduces after it.
struct Step {
  enum class Kind : uint8_t { kCopy, kExchange };
  static constexpr int kNobody = -1;

  Kind kind = Kind::kExchange;
  Part from = {};
  Part to = {};
  int send_to = kNobody;
  int receive_from = kNobody;
  std::optional<Part> with = {};
  bool received_first = true;  // whether the received data is the first operand
  bool completes = false;      // whether the reduced result contains all ranks' parts
};

// Rank, number of ranks and root of a collective.
struct RankPlace {
  int rank;
  int ranks;
  int root = 0;
};

// Steps of one rank for a collective. Pure data; the executor provides the
// memory. Messages between two ranks arrive in the order sent. Unless its
// function says otherwise, a schedule stays correct whether or not a send
// completes before its receive starts.
using Schedule = std::vector<Step>;

// Returns how many scratch blocks the steps use.
int ScratchBlocks(const Schedule& schedule);

// In the following, n is the number of ranks and B the bytes of one block.
// Costs are per rank.

// Copies rank i's inputs[0] to outputs[i]. n - 1 steps, (n - 1) B sent.
Schedule AllGatherPairwise(const RankPlace& place);
// Copies rank i's inputs[this rank] to outputs[i]. n - 1 steps, (n - 1) B sent.
Schedule AllToAllPairwise(const RankPlace& place);
// Copies rank i's inputs[0] to the root's outputs[i], which receives (n - 1) B.
Schedule GatherLinear(const RankPlace& place);
// Copies the root's inputs[rank] to outputs[0]. The root sends (n - 1) B.
Schedule ScatterLinear(const RankPlace& place);
// Copies the root's outputs[0] to outputs[0] by a binomial tree. log2 n steps;
// a rank sends up to log2 n B.
Schedule BroadcastTree(const RankPlace& place);
// Reduces outputs[i] of all ranks in place on a ring. 2 (n - 1) steps,
// 2 (n - 1) B sent. One rank computes each part, so all ranks get the same
// bits.
Schedule AllReduceRing(const RankPlace& place);
// Reduces inputs[this rank] of all ranks to outputs[0] on a ring; inputs do not
// change. n - 1 steps, (n - 1) B sent. Needs scratch[0] and [1], each as large
// as the largest input.
Schedule ReduceScatterRing(const RankPlace& place);
// Reduces inputs[i] of all ranks to the root's outputs[i], which may be its
// inputs[i]. Runs ReduceScatterRing, then the other ranks send their parts to
// the root. Also needs scratch[2].
Schedule ReduceRing(const RankPlace& place);
// Completes after all ranks have entered: dissemination, log2 n steps.
// inputs[0] and outputs[0] are one byte of any value.
Schedule BarrierDissemination(const RankPlace& place);

}  // namespace rankrun::comm
