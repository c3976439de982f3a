#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Runs `rankctl store list`, which prints the keys that match a pattern, sorted.
// Returns the exit code.
int RunList(const CommandLine& line);

}  // namespace rankrun::cli
