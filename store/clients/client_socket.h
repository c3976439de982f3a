#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/status/death_watch.h"

namespace rankrun::store {

// A connected TCP socket with blocking calls, each with its own deadline.
// Independent of any event loop.
// Thread: one at a time.
// Errors of all calls: kTimeout at the deadline; kPeerLost when the peer
// refused, closed or reset the connection or is unreachable; kCancelled when
// `deaths` has reported a death and the call would block; kSystem else.
class ClientSocket {
 public:
  static Result<ClientSocket> Connect(const SocketAddress& peer, TimePoint deadline,
                                      const DeathWatch& deaths = {});

  // Sends all of `bytes`. After an error the number of bytes sent is unknown.
  Result<void> Send(std::string_view bytes, TimePoint deadline, const DeathWatch& deaths = {});

  // Receives until `bytes` is full.
  Result<void> Receive(std::span<char> bytes, TimePoint deadline, const DeathWatch& deaths = {});

  // Returns whether the socket becomes readable before the deadline. An end of
  // the connection counts. A deadline in the past checks without waiting.
  Result<bool> WaitReadable(TimePoint deadline, const DeathWatch& deaths = {}) const;

  const SocketAddress& local() const { return local_; }
  const SocketAddress& peer() const { return peer_; }

 private:
  ClientSocket(Fd fd, SocketAddress local, SocketAddress peer)
      : fd_(std::move(fd)), local_(local), peer_(peer) {}

  Fd fd_;  // non-blocking, because the calls wait in poll
  SocketAddress local_;
  SocketAddress peer_;
};

}  // namespace rankrun::store
