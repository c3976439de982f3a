#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// A node that may take part in a round.
struct Candidate {
  uint64_t node = 0;
  int incarnation = 0;
  std::string name = {};
  int slots = 1;                            // workers
  std::optional<int> claimed_rank = {};     // claimed by the user
  std::optional<int> scheduler_index = {};  // given by the scheduler
  std::optional<int> earlier_rank = {};     // in the previous round
  uint64_t arrival = 0;                     // position in the order of first hellos
  int replaced_after = 0;  // failures in a row after which a spare took its place; 0: none did
};

// A node's place in a round; its node rank is its index in the list.
struct NodeAssignment {
  uint64_t node = 0;
  int incarnation = 0;
  std::string name = {};
  int slots = 1;
  int first_rank = 0;  // global rank of its first worker
  bool operator==(const NodeAssignment&) const = default;
};

// Chooses at most `max_nodes` candidates and numbers them densely, by claimed
// rank, then scheduler's index, then earlier rank, then arrival. Candidates
// with a claim or an earlier rank are chosen before newcomers, and these before
// replaced ones. Pure.
std::vector<NodeAssignment> AssignNodeRanks(std::vector<Candidate> candidates, int max_nodes);

// Keeps one candidate for each claimed rank: the first in the order of
// AssignNodeRanks.
void DropDoubleClaims(std::vector<Candidate>& candidates);

int WorldSizeOf(const std::vector<NodeAssignment>& assignments);

// Returns a digest that is equal for equal rounds and differs for any others.
std::string DigestOf(int round, const std::vector<NodeAssignment>& assignments);

}  // namespace rankrun::agent
