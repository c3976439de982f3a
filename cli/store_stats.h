#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl store stats`: what a server tells of itself. Returns the exit code.
int RunStats(const CommandLine& line);

}  // namespace rankrun::cli
