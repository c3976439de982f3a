#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun::store {

// A connected TCP socket whose calls block, each until a deadline of its own.
// Independent of any event loop.
// Thread: one at a time.
// Errors of all calls: kTimeout at the deadline; kPeerLost when the peer has
// refused, closed or reset the connection or cannot be reached; kCancelled when
// `deaths` has heard of one and the call would have to wait; kSystem else.
class ClientSocket {
 public:
  static Result<ClientSocket> Connect(const SocketAddress& peer, TimePoint deadline,
                                      const DeathWatch& deaths = {});

  // All of `bytes`. How much was sent before an error is unknown.
  Result<void> Send(std::string_view bytes, TimePoint deadline, const DeathWatch& deaths = {});

  // As many bytes as `bytes` has room for.
  Result<void> Receive(std::span<char> bytes, TimePoint deadline, const DeathWatch& deaths = {});

  // Whether there is something to receive, an end of the connection included,
  // before the deadline. One that has passed means: now.
  Result<bool> WaitReadable(TimePoint deadline, const DeathWatch& deaths = {}) const;

  const SocketAddress& local() const { return local_; }
  const SocketAddress& peer() const { return peer_; }

 private:
  ClientSocket(Fd fd, SocketAddress local, SocketAddress peer)
      : fd_(std::move(fd)), local_(local), peer_(peer) {}

  Fd fd_;  // non-blocking: poll does the waiting
  SocketAddress local_;
  SocketAddress peer_;
};

}  // namespace rankrun::store
