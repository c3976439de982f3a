#pragma once

#include <vector>

#include "agent/inspect/stack_groups.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/jobs/job_finder.h"

namespace rankrun::cli {

// `rankctl stacks`.
int RunStacks(const CommandLine& line);

// Returns the stacks of ranks; the note of a group says why there are none. Errors: those of
// JobClient.
Result<std::vector<agent::StackGroup>> AskStacks(FoundJob& job, const std::vector<int>& ranks);

}  // namespace rankrun::cli
