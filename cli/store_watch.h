#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Runs `rankctl store watch`, which prints each change of some keys until
// --timeout, or for ever. Returns the exit code.
int RunWatch(const CommandLine& line);

}  // namespace rankrun::cli
