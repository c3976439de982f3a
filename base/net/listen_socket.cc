#include "base/net/listen_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

namespace rankrun {
namespace {

// Returns -1 if the descriptor has no such option.
int OptionOf(int socket_fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(socket_fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Returns an empty text for a socket that can listen.
std::string Problem(int socket_fd) {
  if (OptionOf(socket_fd, SO_TYPE) < 0) return errno == EBADF ? "is not open" : "is not a socket";
  int family = OptionOf(socket_fd, SO_DOMAIN);
  bool is_ip = family == AF_INET || family == AF_INET6;
  if (!is_ip || OptionOf(socket_fd, SO_PROTOCOL) != IPPROTO_TCP) return "is another kind of socket";
  if (auto peer = SocketAddress::PeerOf(socket_fd)) return "is connected to " + peer->ToString();
  auto address = SocketAddress::LocalOf(socket_fd);
  return address && address->port() != 0 ? "" : "is not bound";
}

// Returns an empty descriptor, with errno set, on failure.
Fd ListenOnAny(const SocketAddress& any) {
  Fd socket(::socket(any.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  const int off = 0;
  bool is_open = any.family() != AF_INET6 ||
                 setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
  is_open = is_open && bind(socket.get(), any.raw(), any.raw_size()) == 0;
  is_open = is_open && listen(socket.get(), SOMAXCONN) == 0;
  return is_open ? std::move(socket) : Fd();
}

}  // namespace

Result<SocketAddress> ListenSocketAddress(int socket_fd) {
  std::string problem = Problem(socket_fd);
  if (problem.empty()) return SocketAddress::LocalOf(socket_fd);
  return Error{ErrorCode::kInvalid, "descriptor " + std::to_string(socket_fd) + " " + problem +
                                        ": want a TCP socket that is bound to a port"};
}

Result<Fd> ListenOnFreePort() {
  for (const char* any : {"::", "0.0.0.0"}) {
    Fd socket = ListenOnAny(*SocketAddress::FromNumeric(any, 0));
    if (socket) return socket;
  }
  return SystemError("listen on a free port", errno);
}

}  // namespace rankrun
