#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "agent/control/dial_failure.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_connector.h"
#include "base/uv/uv_name_lookup.h"
#include "base/uv/uv_stream.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// A connection to an endpoint, or the reason for its failure.
using DialResult = std::variant<std::unique_ptr<Stream>, DialFailure>;

// One attempt to connect to an endpoint. Resolves its name and returns the
// first connection to one of its addresses. Tries the next address when the one
// before fails or has not answered for 250 ms, so that a filtered address costs
// little. If all fail, reports the failure of the largest DialFailureKind.
// Thread: loop.  Lifetime: must not be destroyed inside `on_done`, which is
// called once, later, unless the object is destroyed before.
class ControlDial {
 public:
  using OnDone = std::function<void(DialResult)>;

  // `first` is the index of the first address to try, modulo their number.
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
  std::vector<SocketAddress> addresses_;                // in the order of the attempts
  std::vector<std::unique_ptr<Connector>> connectors_;  // one per address tried so far
  size_t failed_ = 0;                                   // number of failed connectors
  std::optional<DialFailure> nearest_;
  bool done_ = false;
  std::unique_ptr<NameLookup> lookup_;
  Timer timer_;  // deadline of the look-up, then start of the next address
};

}  // namespace rankrun::agent
