#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::launcher {

// Parses a list as "SIGTERM,INT". Returns each signal once, in the order of the
// list. Pure.
// Errors: kInvalid for unknown names ("unknown signal ..., did you mean ..."),
// for signals that cannot be caught, and for signals that rankrun needs itself.
Result<std::vector<int>> ParseSignals(std::string_view list);

}  // namespace rankrun::launcher
