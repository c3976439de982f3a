#pragma once

#include <span>
#include <string_view>

#include "launcher/flags/flag_table.h"

namespace rankrun::launcher {

// The names under which users start rankrun.
inline constexpr std::string_view kRankrun = "rankrun";
inline constexpr std::string_view kTorchrun = "torchrun";

// Returns all flags of rankrun, in the order of --help.
std::span<const Flag> Flags();

// Returns the table of `command`, one of the names above.
FlagTable RankrunFlags(std::string_view command = kRankrun);

}  // namespace rankrun::launcher
