#pragma once

#include <span>
#include <string_view>

#include "launcher/flags/flag_table.h"

namespace rankrun::launcher {

// The names under which users start rankrun.
inline constexpr std::string_view kRankrun = "rankrun";
inline constexpr std::string_view kTorchrun = "torchrun";
inline constexpr std::string_view kRankrunLaunch = "rankrun-launch";  // torch.distributed.launch

// Returns whether the defaults of torchrun hold by this name.
constexpr bool HasTorchrunDefaults(std::string_view command) { return command != kRankrun; }

// Returns all flags of rankrun, in the order of --help.
std::span<const Flag> Flags();

// Returns the table of `command`, one of the names above.
FlagTable RankrunFlags(std::string_view command = kRankrun);

}  // namespace rankrun::launcher
