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

}  // namespace

Result<SocketAddress> ListenSocketAddress(int socket_fd) {
  std::string problem = Problem(socket_fd);
  if (problem.empty()) return SocketAddress::LocalOf(socket_fd);
  return Error{ErrorCode::kInvalid, "descriptor " + std::to_string(socket_fd) + " " + problem +
                                        ": want a TCP socket that is bound to a port"};
}

Result<Fd> OpenTcpSocket() {
  for (int family : {AF_INET6, AF_INET}) {
    Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int off = 0;
    const bool takes_all = family == AF_INET || setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY,
                                                           &off, sizeof off) == 0;
    if (socket && takes_all) return socket;
  }
  return SystemError("open a socket", errno);
}

Result<uint16_t> ListenOnFreePort(int socket_fd) {
  auto address = SocketAddress::LocalOf(socket_fd);
  if (address && address->port() == 0) {
    const char* any = address->family() == AF_INET6 ? "::" : "0.0.0.0";
    address = SocketAddress::FromNumeric(any, 0);
    if (bind(socket_fd, address->raw(), address->raw_size()) != 0 ||
        listen(socket_fd, SOMAXCONN) != 0) {
      return SystemError("listen on a free port", errno);
    }
    address = SocketAddress::LocalOf(socket_fd);
  }
  if (!address) return std::move(address).error();
  return address->port();
}

}  // namespace rankrun
