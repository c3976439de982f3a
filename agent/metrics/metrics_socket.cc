#include "agent/metrics/metrics_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/net/host_port.h"
#include "base/net/socket_address.h"

namespace rankrun::agent {
namespace {

constexpr int kBacklog = 16;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

Error Wrong(const std::string& value, const std::string& reason) {
  return {ErrorCode::kInvalid, "--metrics " + value + ": " + reason};
}

std::string ReasonOf(int errno_value) {
  if (errno_value == EADDRINUSE) return "another process listens there; want a free port";
  return std::strerror(errno_value);
}

// Returns whether a socket at the address is left over from a process that has ended.
bool IsAbandoned(const sockaddr_un& address) {
  Fd probe(socket(AF_UNIX, kSocketFlags, 0));
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  return probe && connect(probe.get(), raw, sizeof address) != 0 && errno == ECONNREFUSED;
}

Result<Fd> ListenOn(const SocketAddress& address) {
  Fd fd(socket(address.family(), kSocketFlags, 0));
  const int on = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address.raw(), address.raw_size()) != 0 || listen(fd.get(), kBacklog) != 0) {
    return Error{ErrorCode::kInvalid, ReasonOf(errno)};
  }
  return fd;
}

}  // namespace

Result<MetricsSocket> MetricsSocket::ListenAt(const std::string& path) {
  const std::string shown = "unix:" + path;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  constexpr size_t kMaxPath = sizeof address.sun_path - 1;
  if (path.size() > kMaxPath) {
    return Wrong(shown, "the path has " + std::to_string(path.size()) + " bytes; want at most " +
                            std::to_string(kMaxPath));
  }
  path.copy(address.sun_path, kMaxPath);
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return Wrong(shown, "exists and is no socket");
    if (!IsAbandoned(address)) return Wrong(shown, "another process listens there");
    unlink(path.c_str());
  }
  Fd fd(socket(AF_UNIX, kSocketFlags, 0));
  constexpr mode_t kOwnerOnly = 0600;  // bind gives the file this mode
  if (!fd || fchmod(fd.get(), kOwnerOnly) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Wrong(shown, std::strerror(errno));
  }
  MetricsSocket bound(std::move(fd), shown, path);
  if (listen(bound.fd(), kBacklog) != 0) return Wrong(shown, std::strerror(errno));
  return bound;
}

Result<MetricsSocket> MetricsSocket::Listen(const MetricsAddress& address) {
  if (!address.path.empty()) return ListenAt(address.path);
  const std::string value = HostPortText(address.host, address.port);
  auto found = SocketAddress::Resolve(address.host, address.port);
  if (!found) return Wrong(value, found.error().message);
  auto fd = ListenOn(found->front());
  if (!fd) return Wrong(value, fd.error().message);
  auto bound = SocketAddress::LocalOf(fd->get());
  if (!bound) return Wrong(value, bound.error().message);
  MetricsSocket socket(std::move(*fd), "http://" + bound->ToString() + "/metrics", "");
  if (address.is_open) return socket;
  socket.hosts_ = {.names = address.names};
  socket.hosts_.names.push_back(address.host);
  socket.is_private_ = bound->is_loopback();
  return socket;
}

MetricsSocket::~MetricsSocket() {
  if (fd_ && !path_.empty()) unlink(path_.c_str());
}

}  // namespace rankrun::agent
