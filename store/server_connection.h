#pragma once

#include <memory>
#include <string>

#include "base/uv_stream.h"
#include "store/server.h"

namespace rankrun::store {

// What a server keeps of one client.
struct Server::Connection {
  const ConnectionId id;
  const std::unique_ptr<Stream> stream;
  RequestDecoder decoder;
  std::string unhandled = {};  // requests that wait until replies are sent
  std::string outbox = {};     // replies that are to be written in one go
  size_t traffic_bytes = 0;    // as of the last AccountFor
  bool silent = true;          // has not said anything yet
  bool half = false;           // is known to stalls_
  bool ended = false;          // nothing is read or answered any more
};

}  // namespace rankrun::store
