#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/inspect/stack_groups.h"
#include "base/result.h"
#include "cli/jobs/job_client.h"

// Operands and output of `rankctl stacks`. Pure.
namespace rankrun::cli {

// The numbers that `rankctl stacks` was given.
struct StackOperands {
  std::set<int> numbers = {};
  bool has_range = false;  // "0-7", which means ranks
};
// Errors: kInvalid for a text that is neither a number nor a range, for a range of pids, and for
// too many numbers.
Result<StackOperands> ParseStackOperands(const std::vector<std::string>& texts, bool are_pids);

// Whether numbers without --job and --pid are ranks: if a job has such ranks. `ranks` is the number
// of ranks of the largest job that runs. Errors: kInvalid if only some of them are.
Result<bool> AreRanks(const StackOperands& operands, int ranks);

// Returns the ranks to ask for: all if none is named.
// Errors: kInvalid if there are too many; kNotFound if the job has no such rank.
Result<std::vector<int>> RanksToAsk(const StackOperands& operands, const std::string& job,
                                    int world_size);

// Returns the ranks that an answer has stacks of, or a reason why there are none.
std::vector<int> RanksIn(const NodeAnswer& answer);

// Returns the stacks that the nodes have sent, and groups without stacks of the other `ranks`,
// whose note says why. `names_nodes`: with the node of each rank.
std::vector<agent::StackGroup> StackGroupsOf(const JobAnswers& answers,
                                             const std::vector<int>& ranks, bool names_nodes);

std::string StackGroupsText(const std::vector<agent::StackGroup>& groups);
// Returns one object for each group, each on one line.
std::string StackGroupsJson(const std::vector<agent::StackGroup>& groups);

}  // namespace rankrun::cli
