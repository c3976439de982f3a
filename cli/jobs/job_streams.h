#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// `rankctl events` and `logs`.
int RunEvents(const CommandLine& line);
int RunLogs(const CommandLine& line);

}  // namespace rankrun::cli
