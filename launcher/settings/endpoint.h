#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/host_port.h"
#include "base/result.h"
#include "launcher/settings/settings.h"

// Hosts and ports of --rdzv-endpoint, --master-addr and --local-addr. Pure.
namespace rankrun::launcher {

// Parses a list as "node-1,10.0.0.1:29400,[::1]"; blanks may stand around the
// commas. The result is not empty.
// Errors: as ParseHostPort.
Result<std::vector<HostPort>> ParseEndpoints(std::string_view text);

// Returns the host of --master-addr or --local-addr without brackets; nothing if it is unset or
// empty.
// Errors: kInvalid, with the origin of the setting.
Result<std::optional<std::string>> ReadHost(const Settings& settings, std::string_view name);

}  // namespace rankrun::launcher
