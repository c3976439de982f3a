#pragma once

#include <string>
#include <vector>

#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun {

// Returns the name of this host's network interface ("eth0") that has
// `address`. If several have it, the scope decides, or else the first is
// returned.
// Errors: kNotFound if no interface has it, kSystem.
Result<std::string> InterfaceOf(const SocketAddress& address);

// Returns whether one of the addresses is on loopback or of an interface of this host.
bool IsThisHost(const std::vector<SocketAddress>& addresses);

// Returns whether `host` is this host. Blocks for the look-up. Errors: those of
// SocketAddress::Resolve.
Result<bool> IsThisHost(const std::string& host);

// Returns the addresses of the interface `name`: IPv4 first, link-local IPv6
// last and with a scope. Errors: kSystem if there is no such interface, kNotFound
// if it has no address.
Result<std::vector<SocketAddress>> AddressesOfInterface(const std::string& name);

// Returns all addresses of this host's interfaces, numeric and without a scope,
// each once. Errors: kSystem.
Result<std::vector<std::string>> InterfaceAddresses();

}  // namespace rankrun
