#pragma once

#include <string>
#include <string_view>

#include "launcher/flags/flag_table.h"

namespace rankrun::launcher {

// Returns the completion script for a shell ("bash", "zsh", "fish" or "tcsh"). It
// completes flags, their values and the program. After the program, the shell
// completes as usual. Pure.
std::string CompletionScript(const FlagTable& table, std::string_view shell);

}  // namespace rankrun::launcher
