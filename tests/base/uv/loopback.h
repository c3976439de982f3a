#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/uv/uv_listener.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"
#include "tests/base/support.h"

namespace rankrun::test {

// Opens a blocking connection to `address`.
inline Fd ConnectTo(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), address.raw(), address.raw_size()) != 0) fd.Reset();
  return fd;
}

inline SocketAddress Loopback(uint16_t port = 0) {
  return *SocketAddress::FromNumeric("127.0.0.1", port);
}

inline std::unique_ptr<Listener> Listen(Loop& loop, const SocketAddress& address,
                                        Listener::OnAccept on_accept) {
  auto listener = Listener::Open(loop, address, std::move(on_accept));
  EXPECT_TRUE(listener) << listener.error().message;
  return listener ? std::move(*listener) : nullptr;
}

inline bool HasIpv6() {
  Fd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = SocketAddress::FromNumeric("::1", 0);
  return fd && address && bind(fd.get(), address->raw(), address->raw_size()) == 0;
}

// Returns bytes whose pattern depends on their position.
inline std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 8) * 7);
  return bytes;
}

}  // namespace rankrun::test
