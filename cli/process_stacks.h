#pragma once

#include <sys/types.h>

#include <vector>

namespace rankrun::cli {

// Prints the stacks of processes on this host: as text, or one line of JSON for each. Returns the
// exit code.
int PrintProcessStacks(const std::vector<pid_t>& pids, bool as_json);

}  // namespace rankrun::cli
