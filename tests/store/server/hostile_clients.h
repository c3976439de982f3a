#pragma once

#include <cstddef>

#include "base/net/socket_address.h"

namespace rankrun::store {

// Hostile or broken clients. Each function sends a bounded number of bytes over
// a bounded number of connections, whatever the server does.

// Opens `count` connections, each with `begun_bytes` of a SET of 64 MiB. All
// send one more byte, `rounds` times in turn. A closed connection is opened
// again.
void SendSlowly(const SocketAddress& server, size_t count, size_t begun_bytes, int rounds);

// Sends random bytes, and requests with a random byte in them, on many
// connections.
void SendGarbage(const SocketAddress& server, unsigned seed, int connections);

// Announces keys, values and counts of 4 GiB and more, in both dialects.
// Expects the server to close each connection.
void AnnounceHugeLengths(const SocketAddress& server, int rounds);

// Fills the store until the server closes the connection.
void FillUp(const SocketAddress& server, size_t store_bytes);

// Connects and disconnects, with and without sending.
void ComeAndGo(const SocketAddress& server, int times);

}  // namespace rankrun::store
