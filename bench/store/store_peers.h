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
#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun::bench {

// Connections of a load generator to one server: all non-blocking, in one
// epoll, numbered from 0 in the order of Add.
// Thread: one at a time.  Lifetime: independent; the destructor closes all.
class Peers {
 public:
  // Receives bytes that are valid during the call only.
  using OnBytes = std::function<Result<void>(size_t peer, std::string_view bytes)>;

  // `patience`: longest time without any data in a Wait.
  // Errors: kSystem.
  static Result<std::unique_ptr<Peers>> Create(const SocketAddress& server,
                                               std::chrono::milliseconds patience);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  size_t size() const { return peers_.size(); }

  // Begins one more connection. Sends `first` as soon as it is established.
  // When all ports to a server on 127.0.0.1 are taken, continues from
  // 127.0.0.2.
  // Errors: kSystem.
  Result<void> Add(std::string first);

  // Sends `bytes`. Bytes that the kernel does not accept at once are sent
  // later.
  // Errors: kPeerLost.
  Result<void> Send(size_t peer, std::string_view bytes);

  // Deliver received bytes: Poll those already there, Wait at least some. Spin
  // waits without sleeping. Otherwise the server would pay for our wake-ups,
  // most of all if it is about as fast as we are.
  // Errors: kPeerLost, "connection 17 to ..."; kTimeout, not from Poll; those
  // of `on_bytes`.
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
  int sources_ = 0;  // number of source addresses used after 127.0.0.1
  std::vector<Peer> peers_;
  std::vector<epoll_event> events_;
  std::vector<char> buffer_;
};

struct Greeting {
  std::string send;
  std::string expect;
};

// Adds `count` connections, each of which sends its greeting. Waits until each
// has received exactly the expected answer. Limits the number of pending
// connections so that no listener's backlog overflows.
// Errors: those of Peers; kProtocol for another answer.
Result<void> AddAndGreet(Peers& peers, size_t count,
                         const std::function<Greeting(size_t peer)>& greeting);

// Returns VALIDATE and a PING, the greeting of PyTorch's clients.
Greeting StoreGreeting(size_t peer);

// Raises this process's limit of open files as far as allowed.
// Errors: kSystem, when it stays below `count` plus some for itself.
Result<void> AllowOpenFiles(size_t count);

}  // namespace rankrun::bench
