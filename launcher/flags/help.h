#pragma once

#include <string>

#include "launcher/flags/flag_table.h"

namespace rankrun::launcher {

// Returns the text of --help, at most 100 columns wide. `usage` follows the name
// of the command. Pure.
std::string FormatHelp(const FlagTable& table, const std::string& usage,
                       const std::string& description);

}  // namespace rankrun::launcher
