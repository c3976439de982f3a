#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_handle.h"
#include "base/uv_timer.h"

namespace rankrun {

class Loop;
class Stream;

// One try to connect to a TCP address. What comes of it has TCP_NODELAY and
// keep-alive set. A connection to itself, which the kernel makes where nobody
// listens at a port of its own choice, is refused.
// Thread: loop.  Lifetime: may not end inside `on_done`, which is called once,
// later, unless it ends before.
class Connector {
 public:
  using OnDone = std::function<void(Result<std::unique_ptr<Stream>>)>;

  // Errors of `on_done`: kTimeout after `timeout`, kExhausted, kSystem; each
  // "connect to <address>: <cause>". failure() then has the errno.
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
  Timer deadline_;  // also for what fails at once
};

}  // namespace rankrun
