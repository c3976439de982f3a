#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/control/job_secret.h"
#include "base/clock.h"
#include "base/net/peer_user.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_timer.h"
#include "store/server/one_port.h"
#include "store/server/unidentified.h"

namespace rankrun::agent {

// Number of an accepted connection; never reused.
using PeerId = uint64_t;

struct ControlServerOptions {
  std::string job_id;
  std::string secret;           // bytes; empty: the job has no secret
  std::string credential = {};  // hands the secret over to nodes that use munge; empty: none
  // Which users of this host may connect; empty: all. For a job without a secret.
  std::function<bool(uid_t)> admits_user = {};
  // Longest time from a connection to its hello, and from a refusal to its end.
  std::chrono::milliseconds handshake_timeout{5000};
  store::UnidentifiedLimits handshakes = {};  // of unfinished ones
  // With more unsent bytes a peer counts as stuck and is lost.
  size_t unsent_bytes = size_t{8} << 20;
};

// The coordinator's side of all control connections. Accepts peers that prove
// the job secret. Closes other connections and logs a line; they do not affect
// the peers.
// Thread: loop.  Lifetime: must not be destroyed inside one of its own
// callbacks; all its methods may be called there.
class ControlServer {
 public:
  struct Callbacks {
    // `local` is the address of this host on the connection.
    std::function<void(PeerId, std::string hello, const SocketAddress& peer,
                       const SocketAddress& local)>
        on_hello;
    std::function<void(PeerId, std::string payload)> on_message;
    // Once for each on_hello, unless Refuse or Close was called before.
    std::function<void(PeerId, Error why)> on_lost;
    // A peer was refused for its secret; it may have sent anything. May be empty.
    std::function<void(const std::string& claimed_hello)> on_wrong_secret = {};
  };

  ControlServer(Loop& loop, ControlServerOptions options, Callbacks callbacks);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  // Listens at `port` (0: a free port) of all interfaces, IPv4 and IPv6, or at
  // `addresses`. Errors: those of store::ListenOnOnePort.
  Result<void> Listen(uint16_t port);
  Result<void> Listen(const std::vector<store::BindAddress>& addresses);
  uint16_t port() const;  // valid after Listen

  // Takes over a connection that another server accepted, with the bytes that
  // it has read. As store::ServerOptions::control.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes);

  // These do nothing for a peer that is gone or refused. `payload` is at most
  // kMaxMessageBytes.
  void Send(PeerId id, std::string_view payload);
  // Sends `payload` and closes the connection when it is sent.
  void Refuse(PeerId id, std::string_view payload);
  void Close(PeerId id);

  // Number of connections, with unfinished handshakes.
  size_t connection_count() const { return peers_.size(); }

 private:
  struct Peer;

  void OnData(Peer& peer, std::string_view bytes);
  std::string_view ReadPreamble(Peer& peer, std::string_view bytes);
  void OnHello(Peer& peer, const std::string& frame);
  void SendSealed(Peer& peer, std::string_view payload);
  void Write(Peer& peer, std::string frame);
  Peer* FindOpen(PeerId id);

  void Drain(Peer& peer);
  void TurnAway(Peer& peer, const std::string& why);
  void Lose(Peer& peer, Error why);
  void End(Peer& peer);
  void OnEnd(Peer& peer, const std::optional<Error>& error);
  bool MayConnect(const Stream& stream);
  bool EnterHandshakes(const Peer& peer);
  void StartDeadline(Peer& peer);
  void OnDeadline();
  void Sweep();

  void Warn(const std::string& message);
  void OnWarnWindowOver();

  Loop& loop_;
  const ControlServerOptions options_;
  const Callbacks callbacks_;
  const JobSecret secret_;
  std::unordered_map<PeerId, std::unique_ptr<Peer>> peers_;
  PeerId next_id_ = 1;
  PeerUsers peer_users_;
  store::Unidentified handshakes_;
  std::deque<std::pair<TimePoint, PeerId>> deadlines_;  // of handshakes and refusals, in order
  std::vector<PeerId> ended_;  // destroyed by Sweep, not in their own callbacks
  Timer deadline_;
  Timer sweep_;
  Timer warn_window_;
  size_t warnings_ = 0;  // number since the start of warn_window_
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace rankrun::agent
