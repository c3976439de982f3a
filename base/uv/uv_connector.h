#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_handle.h"
#include "base/uv/uv_timer.h"

namespace rankrun {

class Loop;
class Stream;

// One attempt to connect to a TCP address. The connection has TCP_NODELAY and
// keep-alive set. A socket connected to itself is refused; the kernel makes one
// if it picks a port as source where no process listens.
// Thread: loop.  Lifetime: may not end inside `on_done`. Calls `on_done` once,
// after the constructor has returned, unless this object ends before.
class Connector {
 public:
  using OnDone = std::function<void(Result<std::unique_ptr<Stream>>)>;

  // Errors of `on_done`: kTimeout after `timeout`, kExhausted, kSystem; each is
  // "connect to <address>: <cause>". failure() then returns the errno.
  Connector(Loop& loop, const SocketAddress& address, std::chrono::milliseconds timeout,
            OnDone on_done);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  ~Connector();

  const SocketAddress& address() const { return address_; }
  int failure() const { return failure_; }

 private:
  struct Trampolines;  // the C callbacks, in uv_connector.cc

  void OnConnected(int status);
  void Fail(int errno_value);

  const SocketAddress address_;
  OnDone on_done_;
  UvHandle<uv_tcp_s> handle_;
  int failure_ = 0;
  bool done_ = false;
  Timer deadline_;  // also reports an immediate failure
};

}  // namespace rankrun
