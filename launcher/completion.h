#pragma once

#include <string>
#include <string_view>

#include "launcher/flag_table.h"

namespace rankrun::launcher {

// The completion script for a shell ("bash", "zsh" or "fish"): flags, what they
// take, and files. Behind the program the shell completes as for any. Pure.
std::string CompletionScript(const FlagTable& table, std::string_view shell);

}  // namespace rankrun::launcher
