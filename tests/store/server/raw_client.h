#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "store/clients/client_socket.h"
#include "store/wire/wire.h"

namespace rankrun::store {

inline TimePoint Soon() { return MonotonicClock().Now() + std::chrono::seconds(20); }

inline std::string Encoded(const Reply& reply) {
  std::string bytes;
  AppendReply(bytes, reply);
  return bytes;
}

// A client that sends exactly the bytes of the test.
class RawClient {
 public:
  // Connects and sends VALIDATE, unless `validate` is false.
  explicit RawClient(const SocketAddress& server, bool validate = true)
      : socket_(Connected(server)) {
    if (validate) Send(EncodeValidate());
  }

  bool Send(std::string_view bytes) { return bool(socket_.Send(bytes, Soon())); }
  bool Ask(const Request& request) { return Send(EncodeRequest(request)); }

  // Receives exactly `count` bytes; returns an empty string if the connection
  // ends before.
  std::string Receive(size_t count) {
    std::string bytes(count, '\0');
    auto received = socket_.Receive(bytes, Soon());
    if (!received) last_error_ = received.error();
    return received ? bytes : std::string();
  }
  std::string ReceiveValue() {
    uint64_t length = 0;
    std::string bytes = Receive(sizeof length);
    if (bytes.empty()) return bytes;
    std::memcpy(&length, bytes.data(), sizeof length);
    return Receive(length);
  }

  // Returns whether the server closes the connection without sending anything.
  bool IsClosed() { return Receive(1).empty() && last_error_.code == ErrorCode::kPeerLost; }

  // Returns whether it closes with an end of stream, not a reset.
  bool IsClosedCleanly() {
    return IsClosed() && last_error_.message.find("reset") == std::string::npos;
  }

  // Returns whether the server answers a PING and has sent nothing before.
  bool IsServed() {
    Ask(PingRequest{4711});
    std::string expected;
    AppendReply(expected, PingReply{4711});
    return Receive(expected.size()) == expected;
  }

  const SocketAddress& local() const { return socket_.local(); }

 private:
  static ClientSocket Connected(const SocketAddress& server) {
    auto socket = ClientSocket::Connect(server, Soon());
    EXPECT_TRUE(socket) << socket.error().message;
    return std::move(*socket);
  }

  ClientSocket socket_;
  Error last_error_{ErrorCode::kSystem, ""};
};

}  // namespace rankrun::store
