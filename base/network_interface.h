#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun {

// The name of the network interface ("eth0") of this host that has `address`;
// of several, the one that its scope names, or the first.
// Errors: kNotFound if none has it, kSystem.
Result<std::string> InterfaceOf(const SocketAddress& address);

// All addresses that this host's interfaces have, numeric and without a scope,
// each once. Errors: kSystem.
Result<std::vector<std::string>> InterfaceAddresses();

}  // namespace rankrun
