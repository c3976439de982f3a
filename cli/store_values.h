#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Run `rankctl store get`, `set`, `add`, `wait` and `del`. Each returns the exit
// code.
int RunGet(const CommandLine& line);
int RunSet(const CommandLine& line);
int RunAdd(const CommandLine& line);
int RunWait(const CommandLine& line);
int RunDel(const CommandLine& line);

}  // namespace rankrun::cli
