#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl stacks`.
int RunStacks(const CommandLine& line);

}  // namespace rankrun::cli
