#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "agent/metrics/metrics_socket.h"
#include "base/net/peer_user.h"
#include "base/uv/uv_poll.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Serves GET /metrics over HTTP, one request for each connection. A client has five seconds;
// of more than 16 clients, the oldest is dropped. So no client delays the loop, or another
// client for long. At a loopback address, programs of other users are refused.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class MetricsServer {
 public:
  // `render` returns the text of a response. `loop` outlives this object.
  // Errors: kSystem.
  static Result<std::unique_ptr<MetricsServer>> Open(Loop& loop, MetricsSocket socket,
                                                     std::function<std::string()> render);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer();

 private:
  class Connection;

  MetricsServer(Loop& loop, MetricsSocket socket, std::function<std::string()> render);
  void Accept();
  void Add(Fd fd);
  void DropEnded();
  bool IsRefused(const Fd& client);

  Loop& loop_;
  MetricsSocket socket_;
  std::function<std::string()> render_;
  std::unique_ptr<Poll> accept_poll_;
  PeerUsers peer_users_;
  bool has_warned_ = false;  // of a client that was refused
  Timer retry_;              // after a lack of descriptors
  Timer drop_;               // connections end outside of their callbacks
  std::list<std::unique_ptr<Connection>> connections_;  // the oldest first
};

}  // namespace rankrun::agent
