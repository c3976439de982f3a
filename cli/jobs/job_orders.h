#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl stop`, `restart` and `drain`.
int RunStop(const CommandLine& line);
int RunRestart(const CommandLine& line);
int RunDrain(const CommandLine& line);

}  // namespace rankrun::cli
