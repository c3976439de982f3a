#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl ps`, `status` and `why`.
int RunPs(const CommandLine& line);
int RunStatus(const CommandLine& line);
int RunWhy(const CommandLine& line);

}  // namespace rankrun::cli
