#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// A node that may be given a place.
struct Candidate {
  uint64_t node = 0;
  int incarnation = 0;
  std::string name = {};
  int slots = 1;                            // workers
  std::optional<int> claimed_rank = {};     // typed
  std::optional<int> scheduler_index = {};  // for the order
  std::optional<int> earlier_rank = {};     // in the last round
  uint64_t arrival = 0;                     // in the order of coming
};

// A node's place in a round: its node rank is its index there.
struct Seat {
  uint64_t node = 0;
  int incarnation = 0;
  std::string name = {};
  int slots = 1;
  int first_rank = 0;  // global rank of its first worker
  bool operator==(const Seat&) const = default;
};

// The at most `most` nodes that get a place, ordered by claimed rank, else by
// the scheduler's index, else by their rank before, else by arrival, and
// numbered densely. Who was there before or has a claim goes before newcomers.
// Pure.
std::vector<Seat> SeatNodes(std::vector<Candidate> candidates, int most);

// Of those that claim the same rank only the one that was there before stays,
// else the one that came first.
void DropDoubleClaims(std::vector<Candidate>& candidates);

int WorldSizeOf(const std::vector<Seat>& seats);

// The same on all nodes that were told of the same round, and of no other.
std::string DigestOf(int round, const std::vector<Seat>& seats);

}  // namespace rankrun::agent
