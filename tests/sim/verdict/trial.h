#pragma once

#include <cstdint>
#include <string>

namespace rankrun::sim {

struct TrialResult {
  std::string violation = {};  // empty: every node has named the culprit
  std::string fault = {};      // of the culprit
};

// Judges the failed attempt that the seed determines, as agents do: each judges the ends on its
// node and sends its part, the coordinator decides on the round, and its node merges the parts,
// in several orders of their arrival, and sends the report to all.
TrialResult Try(uint64_t seed, bool is_traced = false);

// Returns the command that repeats the trial and prints its ends.
std::string TrialCommand(uint64_t seed);

}  // namespace rankrun::sim
