#pragma once

#include <span>
#include <string>
#include <string_view>

#include "launcher/flag_table.h"

namespace rankrun::launcher {

// The names under which rankrun is started.
inline constexpr std::string_view kRankrun = "rankrun";
inline constexpr std::string_view kTorchrun = "torchrun";

// The flags of rankrun, called by one of these names.
FlagTable RankrunFlags(std::string_view command = kRankrun);
std::span<const Flag> Flags();

// Splits rankrun's command line: the words are the program and its arguments.
Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments,
                                        std::string_view command = kRankrun);

}  // namespace rankrun::launcher
