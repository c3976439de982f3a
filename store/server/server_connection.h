#pragma once

#include <memory>
#include <string>

#include "base/uv/uv_stream.h"
#include "store/server/server.h"

namespace rankrun::store {

// Tells whether a client's user may be served.
struct Server::UserCheck {
  std::string problem = {};  // empty: it may, or this host does not know it
  bool is_remote = false;    // the client is on another host
};

// State of one client. With thousands of clients the number of cache lines per
// request counts, so the hot fields are in the first two.
struct Server::Connection {
  Connection(ConnectionId own_id, std::unique_ptr<Stream> own_stream, const WireLimits& limits)
      : id(own_id), stream(std::move(own_stream)), decoder(limits) {}

  const ConnectionId id;
  std::unique_ptr<Stream> stream;
  RequestDecoder decoder;
  size_t traffic_bytes = 0;  // as of the last Account()
  bool silent = true;        // no bytes received yet
  bool held = false;         // waits for AdmitOnly
  bool is_remote = false;    // of another host, and not vouched for yet
  bool is_asked = false;     // waits for OnVouched
  bool half = false;         // has an entry in stalls_
  bool waiting = false;      // has an entry in waiting_
  bool ended = false;        // no longer read or answered
  std::string unhandled;     // input not handled yet: further requests, or the start of the first
  std::string outbox;        // unsent replies that other connections caused
  std::string user_problem;  // why its user may not be a client; empty: it may
};

}  // namespace rankrun::store
