#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/server/hosted_server.h"

namespace rankrun::comm {

// A store server in this process.
struct OwnServer {
  std::shared_ptr<store::HostedServer> server;  // owners: the stores that share it
  std::string host;                             // address at which this process reaches it
  bool is_local = false;                        // listens on loopback only
};

// Returns whether `host` is a loopback address or "localhost".
bool IsLoopback(const std::string& host);

// Starts a server. It listens on loopback only if `host` is on loopback, else on
// all addresses.
// Errors: those of HostedServer::Start.
Result<OwnServer> ServeStore(const std::string& host, uint16_t port);

// Starts a server on a bound TCP socket, which it takes over.
// Errors: kInvalid, with the descriptor unchanged, if it is anything else; with
// the socket closed those of HostedServer::Start.
Result<OwnServer> ServeStoreOn(int listen_fd);

}  // namespace rankrun::comm
