#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/stacks/process_stacks.h"

// Suspects of a hang whose workers show nothing but their stacks, as those of PyTorch without
// librankrun. Pure.
namespace rankrun::agent {

struct RankStacks {
  int global_rank = 0;
  ProcessStacks stacks = {};
};

// Returns the function of torch.distributed, or of a library below it, in which the main thread
// is: "all_reduce". Empty: it is in none.
std::string CollectiveOf(const ProcessStacks& stacks);

struct StackSuspect {
  int global_rank = 0;
  std::string what = {};  // "in barrier, while all others are in all_reduce"
};

// Returns the only rank whose main thread is in no collective while those of all others are. If
// all are in one, returns the only rank that is in another than all others. Returns nothing if
// there is no such rank, or if the stacks of one could not be read.
std::optional<StackSuspect> SuspectByStacks(const std::vector<RankStacks>& workers);

}  // namespace rankrun::agent
