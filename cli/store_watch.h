#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl store watch`: shows each change of some keys until --timeout, or for
// ever. Returns the exit code.
int RunWatch(const CommandLine& line);

}  // namespace rankrun::cli
