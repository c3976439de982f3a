#pragma once

#include <span>

#include "cli/command.h"

namespace rankrun::cli {

// The commands about running jobs: `rankctl ps`, `status`, `why`, ...
std::span<const Command> JobCommands();

}  // namespace rankrun::cli
