#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun::bench {

// The connections of a load generator to one server: all non-blocking, in one
// epoll, numbered from 0 in the order of Add.
// Thread: one at a time.  Lifetime: on its own; the end closes all.
class Peers {
 public:
  // Bytes that have come; valid during the call only.
  using OnBytes = std::function<Result<void>(size_t peer, std::string_view bytes)>;

  // `patience`: how long nothing at all may come in a Wait.
  // Errors: kSystem.
  static Result<std::unique_ptr<Peers>> Create(const SocketAddress& server,
                                               std::chrono::milliseconds patience);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  size_t size() const { return peers_.size(); }

  // Begins one more connection, on which `first` is sent as soon as it is made.
  // When all ports to a server on 127.0.0.1 are taken, goes on from 127.0.0.2.
  // Errors: kSystem.
  Result<void> Add(std::string first);

  // Sends; what the kernel does not take at once is kept and sent later.
  // Errors: kPeerLost.
  Result<void> Send(size_t peer, std::string_view bytes);

  // Delivers what has come: Poll what is there already, Wait at least something.
  // Spin waits without sleeping: else a server pays for waking us up, and the
  // more so the closer it is to our own speed.
  // Errors: kPeerLost, "connection 17 to ..."; kTimeout, not from Poll; those of
  // `on_bytes`.
  Result<void> Poll(const OnBytes& on_bytes);
  Result<void> Wait(const OnBytes& on_bytes);
  Result<void> Spin(const OnBytes& on_bytes);

 private:
  struct Peer {
    Fd socket;
    std::string unsent;
    bool connected = false;
  };

  Peers(const SocketAddress& server, std::chrono::milliseconds patience, Fd epoll);

  Result<void> Connect(int socket);
  Result<void> DispatchSome(int count, const OnBytes& on_bytes);
  Result<void> Dispatch(int count, const OnBytes& on_bytes);
  Result<void> Flush(size_t number);
  Result<void> Receive(size_t number, bool to_the_end, const OnBytes& on_bytes);

  const SocketAddress server_;
  const std::chrono::milliseconds patience_;
  Fd epoll_;
  int sources_ = 0;  // addresses after 127.0.0.1 that were taken to connect from
  std::vector<Peer> peers_;
  std::vector<epoll_event> events_;
  std::vector<char> buffer_;
};

struct Greeting {
  std::string send;
  std::string expect;
};

// Adds `count` connections, each of which sends its greeting; waits until each
// has got exactly the answer it expects. Only so many wait at a time that no
// listener's backlog runs over.
// Errors: those of Peers; kProtocol for another answer.
Result<void> AddAndGreet(Peers& peers, size_t count,
                         const std::function<Greeting(size_t peer)>& greeting);

// VALIDATE and a PING, as a client of PyTorch's begins.
Greeting StoreGreeting(size_t peer);

// Raises this process's limit of open files as far as it may.
// Errors: kSystem, when it stays below `count` and some for itself.
Result<void> AllowOpenFiles(size_t count);

}  // namespace rankrun::bench
