#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun {

// Returns the address of a TCP socket that another part of the program has
// bound, so that a server can listen there. Does not change the socket; it may
// already be listening.
// Errors: kInvalid, "descriptor 7 <problem>: want a TCP socket that is bound to a
// port", for any other descriptor, an unbound and a connected socket among them.
Result<SocketAddress> ListenSocketAddress(int socket_fd);

// Returns a TCP socket without an address, close-on-exec and non-blocking: for IPv6 and IPv4, or
// for IPv4 on a host without IPv6.
// Errors: kSystem, kExhausted.
Result<Fd> OpenTcpSocket();

// Lets a socket of OpenTcpSocket listen at a free port of all interfaces, unless it has a port.
// Returns the port.
// Errors: kSystem, kExhausted.
Result<uint16_t> ListenOnFreePort(int socket_fd);

}  // namespace rankrun
