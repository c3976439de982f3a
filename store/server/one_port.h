#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_listener.h"

namespace rankrun {
class Loop;
class Stream;
}  // namespace rankrun

namespace rankrun::store {

// An address to listen on. An optional one is skipped on a host that does not
// have it, such as ::1 without IPv6.
struct BindAddress {
  SocketAddress address;
  bool optional = false;
};

// Listens on all of `addresses`, which must name the same port. Port 0 selects
// a port that is free on each of them.
// Errors, with nothing left open: kInvalid when the ports differ; kSystem,
// "listen on <address>: <cause>", when an address is unavailable or none is
// left.
// Thread: loop.
Result<std::vector<std::unique_ptr<Listener>>> ListenOnOnePort(
    Loop& loop, const std::vector<BindAddress>& addresses,
    const std::function<void(std::unique_ptr<Stream>)>& on_accept);

// Listens on a socket that is already bound. Errors: those of Listener::Adopt.
// Thread: loop.
Result<std::vector<std::unique_ptr<Listener>>> ListenOnSocket(
    Loop& loop, Fd socket, const std::function<void(std::unique_ptr<Stream>)>& on_accept);

}  // namespace rankrun::store
