#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_listener.h"

namespace rankrun {
class Loop;
class Stream;
}  // namespace rankrun

namespace rankrun::store {

// An address to listen on. An optional one is left out on a host that does not
// have it, as ::1 where IPv6 is off.
struct BindAddress {
  SocketAddress address;
  bool optional = false;
};

// Listens on all of `addresses`, which must name the same port. Port 0 is one
// that is free on each of them.
// Errors: kInvalid when the ports differ; kSystem, "listen on <address>:
// <cause>", when an address cannot be had or none is left. Nothing is left
// open then.
// Thread: loop.
Result<std::vector<std::unique_ptr<Listener>>> ListenOnOnePort(
    Loop& loop, const std::vector<BindAddress>& addresses,
    const std::function<void(std::unique_ptr<Stream>)>& on_accept);

}  // namespace rankrun::store
