#pragma once

#include <cstddef>

#include "base/socket_address.h"

namespace rankrun::store {

// Clients that mean harm, or know no better. Each call goes on, for a bounded
// number of connections and bytes, whatever the server does about it.

// `count` connections, each with `begun_bytes` of a SET of 64 MiB; all send one
// byte more, `rounds` times in turn. Whoever is closed begins anew.
void SendSlowly(const SocketAddress& server, size_t count, size_t begun_bytes, int rounds);

// Random bytes, and requests with a random byte in them, on many connections.
void SendGarbage(const SocketAddress& server, unsigned seed, int connections);

// Keys, values and counts of 4 GiB and more, in both dialects; expects to be
// closed for each.
void AnnounceHugeLengths(const SocketAddress& server, int rounds);

// Fills the store until it is closed for that.
void FillUp(const SocketAddress& server, size_t store_bytes);

// Comes and goes, with a word and without.
void ComeAndGo(const SocketAddress& server, int times);

}  // namespace rankrun::store
