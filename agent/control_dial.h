#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "agent/dial_verdict.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_connector.h"
#include "base/uv_name_lookup.h"
#include "base/uv_stream.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// A connection to an endpoint, or why there is none.
using DialResult = std::variant<std::unique_ptr<Stream>, DialFailure>;

// One try to connect to an endpoint: looks its name up, and takes the first of
// its addresses that takes a connection. Each is tried when the one before has
// failed or has not answered for 250 ms, so that one that is filtered costs
// little. Of several failures it tells the one that came nearest.
// Thread: loop.  Lifetime: may not end inside `on_done`, which is called once,
// later, unless it ends before.
class ControlDial {
 public:
  using OnDone = std::function<void(DialResult)>;

  // `first` is the place of the address to begin with, modulo their number.
  ControlDial(Loop& loop, const Endpoint& endpoint, size_t first,
              std::chrono::milliseconds connect_timeout, OnDone on_done);
  ControlDial(const ControlDial&) = delete;
  ControlDial& operator=(const ControlDial&) = delete;
  ~ControlDial();

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  void OnLookedUp(Result<std::vector<SocketAddress>> found);
  void OnTimer();
  void TryNext();
  void OnConnected(size_t index, Result<std::unique_ptr<Stream>> connected);
  void Finish(DialResult result);

  Loop& loop_;
  const Endpoint endpoint_;
  const size_t first_;
  const std::chrono::milliseconds connect_timeout_;
  const OnDone on_done_;
  std::vector<SocketAddress> addresses_;                // in the order in which they are tried
  std::vector<std::unique_ptr<Connector>> connectors_;  // of the first of them
  size_t failed_ = 0;                                   // of connectors_
  std::optional<DialFailure> nearest_;
  bool done_ = false;
  std::unique_ptr<NameLookup> lookup_;
  Timer timer_;  // the end of the look-up, or the next address
};

}  // namespace rankrun::agent
