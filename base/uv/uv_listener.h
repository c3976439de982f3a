#pragma once

#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;
class Stream;

// Listens on one TCP address (close-on-exec, SO_REUSEADDR, IPv6 only for IPv6
// addresses, the kernel's largest backlog). Passes on connections with
// TCP_NODELAY and keep-alive set. If the process has no descriptor left, libuv
// closes the connection and the listener continues.
// Thread: loop.  Lifetime: may not end inside `on_accept`.
class Listener {
 public:
  using OnAccept = std::function<void(std::unique_ptr<Stream>)>;

  // Port 0: chosen by the kernel; address() has it.
  // Errors: kSystem, "listen <address>: <cause>"; nothing is left open.
  static Result<std::unique_ptr<Listener>> Open(Loop& loop, const SocketAddress& address,
                                                OnAccept on_accept);
  // Takes over a bound TCP socket, listening or not, and makes it close-on-exec.
  // The other options are left as they are.
  // Errors, with the socket closed: those of ListenSocketAddress; kSystem.
  static Result<std::unique_ptr<Listener>> Adopt(Loop& loop, Fd socket, OnAccept on_accept);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const SocketAddress& address() const { return address_; }

 private:
  struct Trampolines;  // the C callbacks, in uv_listener.cc

  Listener(Loop& loop, OnAccept on_accept);

  Loop& loop_;
  OnAccept on_accept_;
  SocketAddress address_;
  UvHandle<uv_tcp_s> handle_;
};

}  // namespace rankrun
