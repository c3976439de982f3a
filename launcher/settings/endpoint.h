#pragma once

#include <string_view>
#include <vector>

#include "base/net/host_port.h"
#include "base/result.h"

// Parts of --rdzv-endpoint and --master-addr. Pure.
namespace rankrun::launcher {

// Parses a list as "node-1,10.0.0.1:29400,[::1]"; blanks may stand around the
// commas. The result is not empty.
// Errors: as ParseHostPort.
Result<std::vector<HostPort>> ParseEndpoints(std::string_view text);

}  // namespace rankrun::launcher
