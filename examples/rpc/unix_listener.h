#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

#include <rankrun/objects.h>

// Connections over UNIX sockets.
namespace own_agent {

[[noreturn]] inline void ThrowErrno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

inline int MakeSocket() {
  int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) ThrowErrno("socket");
  return socket;
}

// A socket that others connect to, at an address that the kernel chooses.
class Listener {
 public:
  Listener() {
    const sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
    const auto* unnamed = reinterpret_cast<const sockaddr*>(&any);
    if (bind(line_, unnamed, sizeof any.sun_family) != 0) ThrowErrno("bind");
    if (listen(line_, SOMAXCONN) != 0) ThrowErrno("listen");
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(line_); }

  rankrun::Object address() const {
    sockaddr_un own{};
    socklen_t size = sizeof own;
    if (getsockname(line_, reinterpret_cast<sockaddr*>(&own), &size) != 0)
      ThrowErrno("getsockname");
    const auto* bytes = reinterpret_cast<const std::byte*>(&own);
    return {bytes, bytes + size};
  }
  // Accepts a process of this user.
  int Accept() const {
    for (;;) {
      int socket = accept4(line_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) ThrowErrno("accept");
      ucred peer{};
      socklen_t size = sizeof peer;
      bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
      if (known && peer.uid == getuid()) return socket;
      close(socket);
    }
  }

 private:
  const int line_ = MakeSocket();
};

// Connects to a listener.
inline int ConnectTo(const rankrun::Object& address) {
  int socket = MakeSocket();
  const auto* at = reinterpret_cast<const sockaddr*>(address.data());
  if (connect(socket, at, static_cast<socklen_t>(address.size())) != 0) ThrowErrno("connect");
  return socket;
}

}  // namespace own_agent
