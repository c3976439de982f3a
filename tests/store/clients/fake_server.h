#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "store/wire/wire.h"

namespace rankrun::store {

// A socket bound to a free port of 127.0.0.1 that does not listen, so
// connections are refused.
inline Fd BoundSocket() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address = *SocketAddress::FromNumeric("127.0.0.1", 0);
  EXPECT_EQ(bind(fd.get(), address.raw(), address.raw_size()), 0);
  return fd;
}

// A listener on 127.0.0.1 that accepts nothing and whose queue is full. The
// kernel drops new connections, as a firewall would.
class FullListener {
 public:
  FullListener() : listener_(BoundSocket()) {
    EXPECT_EQ(listen(listener_.get(), 0), 0);
    for (Fd& fd : waiting_) {
      fd = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      SocketAddress address = *SocketAddress::LocalOf(listener_.get());
      connect(fd.get(), address.raw(), address.raw_size());
    }
  }

  uint16_t port() const { return SocketAddress::LocalOf(listener_.get())->port(); }

 private:
  Fd listener_;
  std::array<Fd, 4> waiting_;  // the queue has room for one; the kernel may grant one more
};

// One accepted connection of a FakeServer.
class FakeConnection {
 public:
  explicit FakeConnection(Fd fd) : fd_(std::move(fd)) {}

  // Receives `count` bytes; fewer if the client disconnects.
  std::string Receive(size_t count) {
    std::string bytes(count, '\0');
    ssize_t received = recv(fd_.get(), bytes.data(), count, MSG_WAITALL);
    bytes.resize(received > 0 ? static_cast<size_t>(received) : 0);
    return bytes;
  }
  void Send(std::string_view bytes) { send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  // Reads VALIDATE and PING and answers like a store server.
  void Greet() {
    Receive(EncodeValidate().size() + 1);
    Send(Receive(sizeof(uint32_t)));
  }
  void ReceiveRequest(const Request& request) {
    EXPECT_EQ(Receive(EncodeRequest(request).size()), EncodeRequest(request));
  }
  void AwaitEnd() {
    while (!Receive(1).empty()) continue;
  }
  // Closes with a reset instead of an end of stream.
  void Reset() {
    linger at_once{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_.Reset();
  }

 private:
  Fd fd_;
};

// Accepts connections one after the other and passes each to `serve`, with its
// number from 0.
// The test's clients must be destroyed before it.
class FakeServer {
 public:
  using Serve = std::function<void(FakeConnection& connection, int number)>;

  explicit FakeServer(Serve serve) : listener_(BoundSocket()), serve_(std::move(serve)) {
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeServer() {
    shutdown(listener_.get(), SHUT_RDWR);  // ends accept
    thread_.join();
  }

  uint16_t port() const { return SocketAddress::LocalOf(listener_.get())->port(); }

 private:
  void Run() {
    for (int number = 0;; ++number) {
      Fd fd(accept(listener_.get(), nullptr, nullptr));
      if (!fd) return;
      FakeConnection connection(std::move(fd));
      serve_(connection, number);
    }
  }

  Fd listener_;
  Serve serve_;
  std::thread thread_;
};

}  // namespace rankrun::store
