#pragma once

#include <span>
#include <string>

#include "launcher/flag_table.h"

namespace rankrun::launcher {

// The flags of rankrun.
const FlagTable& RankrunFlags();
std::span<const Flag> Flags();

// Splits rankrun's command line: the words are the program and its arguments.
Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments);

}  // namespace rankrun::launcher
