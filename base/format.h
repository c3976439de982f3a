#pragma once

#include <string>

#include "base/clock.h"
#include "base/private_api.h"

namespace rankrun {

// Returns "0.012 s", "1.5 s", "75.0 s": three decimals below a second, one
// above.
RANKRUN_PRIVATE_API std::string FormatSeconds(Duration duration);

// Returns "SIGKILL" for 9, "signal 99" for a number without a name.
std::string SignalName(int signal_number);

}  // namespace rankrun
