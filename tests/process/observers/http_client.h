#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace rankrun::testing {

// Connects to a port of this host, or to a UNIX socket; no descriptor if nothing listens.
Fd Connect(int port);
Fd Connect(const std::string& path);

// Sends bytes; returns whether the peer took all of them.
bool Send(const Fd& socket, std::string_view bytes);

// Returns all bytes until the end of the connection, or those of 20 seconds.
std::string Receive(const Fd& socket);

// Returns the response to a request; empty if nothing listens.
std::string Exchange(int port, std::string_view request);

// Returns the response to GET /metrics.
std::string Scrape(int port);

}  // namespace rankrun::testing
