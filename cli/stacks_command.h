#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Returns `rankctl stacks`, which prints the stacks of processes on this host.
const Command& StacksCommand();

}  // namespace rankrun::cli
