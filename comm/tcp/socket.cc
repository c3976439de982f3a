#include "comm/tcp/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rankrun::comm::tcp {
namespace {

// A lost host is reported after kIdleSeconds + kProbes * kProbeSeconds.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 4;

void Set(int socket_fd, int level, int option, int value) {
  setsockopt(socket_fd, level, option, &value, sizeof value);
}

std::string OpenFilesLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

}  // namespace

DescriptorNeed NeedOf(size_t ranks, size_t data_streams) {
  size_t listeners = data_streams;
  return {ranks, (ranks - 1) * (data_streams + 1) + listeners};
}

bool IsExhaustion(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS ||
         error_number == ENOMEM;
}

Error SocketError(std::string_view what, int error_number, const DescriptorNeed& need) {
  Error error = SystemError(what, error_number);
  if (!IsExhaustion(error_number)) return error;
  error.code = ErrorCode::kExhausted;
  error.message += "; each of " + std::to_string(need.ranks) + " ranks needs " +
                   std::to_string(need.descriptors) +
                   " descriptors for connections, the limit of this one is " + OpenFilesLimit() +
                   " (ulimit -n)";
  return error;
}

// No TCP_USER_TIMEOUT: a receiver that computes for an hour reads nothing, and
// the kernel would take that for a loss.
void SetStreamOptions(int socket_fd) {
  Set(socket_fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(socket_fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket_fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  Set(socket_fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  Set(socket_fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

Fd StartConnecting(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  SetStreamOptions(fd.get());
  if (connect(fd.get(), address.raw(), address.raw_size()) == 0) return fd;
  if (errno == EINPROGRESS || errno == EINTR) return fd;
  int error_number = errno;
  fd.Reset();
  errno = error_number;
  return fd;
}

SocketAddress InScopeOf(const SocketAddress& own, SocketAddress address) {
  if (own.family() != AF_INET6 || address.family() != AF_INET6) return address;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(address.raw());
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
    v6->sin6_scope_id = reinterpret_cast<const sockaddr_in6*>(own.raw())->sin6_scope_id;
  }
  return address;
}

std::string ErrorText(int error_number) {
  char text[128];
  return strerror_r(error_number, text, sizeof text);
}

int TakeSocketError(int socket_fd) {
  int error_number = 0;
  socklen_t size = sizeof error_number;
  if (getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) return errno;
  return error_number;
}

bool IsConnectedToItself(int socket_fd) {
  auto local = SocketAddress::LocalOf(socket_fd);
  auto peer = SocketAddress::PeerOf(socket_fd);
  return local && peer && local->port() == peer->port() && local->Bytes() == peer->Bytes();
}

}  // namespace rankrun::comm::tcp
