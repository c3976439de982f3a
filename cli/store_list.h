#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl store list`: the keys that match a pattern, sorted. Returns the exit
// code.
int RunList(const CommandLine& line);

}  // namespace rankrun::cli
