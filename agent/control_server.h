#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/job_secret.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_timer.h"
#include "store/one_port.h"

namespace rankrun::agent {

// A connection that was let in; never used again for another one.
using PeerId = uint64_t;

struct ControlServerOptions {
  std::string job_id;
  std::string secret;  // bytes; empty: there is none
  // From a connection to its hello; and from a refusal to its end.
  std::chrono::milliseconds opening_timeout{5000};
  // How many of one address may be on their way in.
  size_t openings_per_address = 64;
  // Over this, a peer is not reading, and is lost.
  size_t unsent_bytes = size_t{8} << 20;
};

// The coordinator's side of all control connections: lets in who proves the job
// secret. A stranger is closed with a log line; all others go on.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks; all its
// methods may be called there.
class ControlServer {
 public:
  struct Callbacks {
    // `local` is the address of this host by which the peer came.
    std::function<void(PeerId, std::string hello, const SocketAddress& peer,
                       const SocketAddress& local)>
        on_hello;
    std::function<void(PeerId, std::string payload)> on_message;
    // Once for each on_hello, unless Refuse or Close came before.
    std::function<void(PeerId, Error why)> on_lost;
  };

  ControlServer(Loop& loop, ControlServerOptions options, Callbacks callbacks);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  // Listens at `port` (0: a free one) of all interfaces, IPv4 and IPv6, or of
  // `addresses`. Errors: those of store::ListenOnOnePort.
  Result<void> Listen(uint16_t port);
  Result<void> Listen(const std::vector<store::BindAddress>& addresses);
  uint16_t port() const;  // once it listens

  // Takes a connection that came elsewhere, with what was read from it. As
  // store::ServerOptions::control.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes);

  // Of one that is gone or refused, they do nothing. `payload` is at most
  // kMostFrameBytes.
  void Send(PeerId id, std::string_view payload);
  // Sends, and closes once that has gone.
  void Refuse(PeerId id, std::string_view payload);
  void Close(PeerId id);

  // Of all connections, also those on their way in.
  size_t connection_count() const { return peers_.size(); }

 private:
  struct Peer;

  void OnData(Peer& peer, std::string_view bytes);
  std::string_view ReadPreamble(Peer& peer, std::string_view bytes);
  void OnFrame(Peer& peer, std::string frame);
  void OnHello(Peer& peer, const std::string& frame);
  void Write(Peer& peer, std::string_view payload);
  Peer* FindOpen(PeerId id);

  void Drain(Peer& peer);
  void TurnAway(Peer& peer, const std::string& why);
  void Lose(Peer& peer, Error why);
  void End(Peer& peer);
  void OnEnd(Peer& peer, const std::optional<Error>& error);
  bool EnterOpenings(const SocketAddress& address);
  void LeaveOpenings(Peer& peer);
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
  std::map<AddressBytes, size_t> openings_;             // never 0
  std::deque<std::pair<TimePoint, PeerId>> deadlines_;  // of openings and refusals, in order
  std::vector<PeerId> ended_;                           // may not end inside their callbacks
  Timer deadline_;
  Timer sweep_;
  Timer warn_window_;
  size_t warnings_ = 0;  // since warn_window_ was started
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace rankrun::agent
