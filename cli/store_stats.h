#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Runs `rankctl store stats`, which prints the statistics of a server. Returns
// the exit code.
int RunStats(const CommandLine& line);

}  // namespace rankrun::cli
