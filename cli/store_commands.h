#pragma once

#include <span>

#include "cli/command.h"

namespace rankrun::cli {

// Returns the commands of `rankctl store`.
std::span<const Command> StoreCommands();

}  // namespace rankrun::cli
