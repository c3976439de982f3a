#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::launcher {

// The signals of a list "SIGTERM,INT": each once, in their order. Pure.
// Errors: kInvalid ("unknown signal ..., did you mean ...") for names that
// there are not, and for signals that cannot be caught or that rankrun needs
// itself.
Result<std::vector<int>> ParseSignals(std::string_view list);

}  // namespace rankrun::launcher
