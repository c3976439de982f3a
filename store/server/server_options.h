#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/server/admission.h"
#include "store/server/one_port.h"
#include "store/server/unidentified.h"
#include "store/wire/wire.h"

namespace rankrun::store {

// Limit of a key, a value and a reply. An outbox holds less than twice this,
// and libuv counts its bytes in an unsigned int.
constexpr int kMaxPieceG = 1;
constexpr size_t kMaxPiece = size_t{kMaxPieceG} << 30;

struct ServerOptions {
  std::vector<BindAddress> addresses;  // all with one port; see ListenOnOnePort
  // If not -1, replaces `addresses`: a bound TCP socket that Server::Listen takes
  // over, and also closes on errors.
  int listen_fd = -1;
  WireLimits limits;
  AdmissionLimits admission;
  // Limit of all keys, values and waits.
  size_t largest_store_bytes = size_t{4} << 30;
  // Limit of incomplete requests and unsent replies, all connections together.
  size_t largest_traffic_bytes = size_t{4} << 30;
  // Unsent bytes from which on the server stops reading from that client.
  size_t unsent_bytes = size_t{1} << 20;
  // Time within which Stalls::kProgressBytes more of an incomplete request must
  // arrive. A connection between two requests may be silent for ever.
  std::chrono::milliseconds half_request_timeout{60'000};
  // Limits of connections that neither come from an admitted address nor have
  // shown that they are control connections, and their time to do so. Only with
  // `control`.
  UnidentifiedLimits strangers{.in_all = 4096, .per_network = 256};
  std::chrono::milliseconds stranger_timeout{5'000};
  // Says which users of this host may be clients. Without it: all.
  std::function<bool(uid_t)> admits_user;
  std::string user_advice;  // follows the reason when another user of this host is refused
  // Asks whether a client of another host may be served, when it connects. Its requests wait until
  // Server::OnVouched, which has to follow, but must not be called in here. Without it, and while
  // `admission` allows all addresses: all may.
  struct RemoteClient {
    uint64_t id;
    SocketAddress local;  // the end of the server
    SocketAddress peer;
  };
  std::function<void(const RemoteClient&)> ask_whose;
  // Gets each request that exceeded a limit of memory or size, instead of the log. Its connection
  // stays open until Server::NameRefusal, for 2 s at most, so that the process at its other end
  // can be found.
  struct Refusal {
    SocketAddress client;
    std::string why;  // `SET of key "model" with a value of 9 bytes is over the limit of 8`
  };
  std::function<void(const Refusal&)> on_refusal;
  // Takes over connections that begin with kControlPreamble, paused, with the
  // bytes already read from them. It is called between two events of the loop
  // and must not destroy the server. Without it such connections are refused as
  // protocol errors; with it they may come from all addresses.
  using Control = std::function<void(std::unique_ptr<Stream>, std::string_view first_bytes)>;
  Control control;
};

}  // namespace rankrun::store
