#pragma once

#include <memory>
#include <string>

#include "base/uv_stream.h"
#include "store/server.h"

namespace rankrun::store {

// What a server keeps of one client. With thousands of them, each line of the
// cache counts that a request needs: here the first two.
struct Server::Connection {
  Connection(ConnectionId own_id, std::unique_ptr<Stream> own_stream, const WireLimits& limits)
      : id(own_id), stream(std::move(own_stream)), decoder(limits) {}

  const ConnectionId id;
  std::unique_ptr<Stream> stream;
  RequestDecoder decoder;
  size_t traffic_bytes = 0;  // as of the last Account
  bool silent = true;        // has not said anything yet
  bool half = false;         // is known to stalls_
  bool waiting = false;      // is in waiting_
  bool ended = false;        // nothing is read or answered any more
  std::string unhandled;     // requests that wait until replies are sent, or half a first word
  std::string outbox;        // replies that others caused, not written yet
};

}  // namespace rankrun::store
