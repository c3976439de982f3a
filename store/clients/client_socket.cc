#include "store/clients/client_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

Error SocketError(std::string_view what, int errno_value) {
  Error error = SystemError(what, errno_value);
  switch (errno_value) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ETIMEDOUT:  // from keep-alive or the kernel's own time-out, not our deadline
    case EHOSTUNREACH:
    case ENETUNREACH:
      error.code = ErrorCode::kPeerLost;
      break;
    default:
      break;
  }
  return error;
}

Error TimeoutError(std::string_view what) {
  return Error{ErrorCode::kTimeout, std::string(what) + ": timed out"};
}

// Returns whether `events`, an error or a hang-up occurred before the deadline.
Result<bool> PollUntil(int fd, short events, TimePoint deadline, const DeathWatch& deaths) {
  TimePoint began = MonotonicClock().Now();
  while (true) {
    bool has_death = deaths.has_death();
    TimePoint until = has_death ? began : deaths.NextLook(deadline);
    auto left = std::chrono::ceil<milliseconds>(until - MonotonicClock().Now());
    auto wait_ms = std::clamp<milliseconds::rep>(left.count(), 0, INT_MAX);
    pollfd polled{fd, events, 0};
    int count = poll(&polled, 1, static_cast<int>(wait_ms));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return SystemError("poll a socket", errno);
    if (has_death) return deaths.ErrorSince(began);
    // Some time may be left after EINTR, after a check of `deaths`, or when the
    // wait was cut to INT_MAX.
    if (count == 0 && MonotonicClock().Now() >= deadline) return false;
  }
}

void SetOptions(int fd) {
  int on = 1;
  int idle_seconds = 60;
  // Ignore failures: without these options the store is only slower, or detects
  // a peer's power failure later.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
}

// Adds to a connect error what the system's text leaves open.
Error ConnectError(const std::string& what, int errno_value) {
  Error error = SocketError(what, errno_value);
  if (errno_value == ECONNREFUSED) error.message += ": nobody listens there";
  return error;
}

Result<void> FinishConnect(int fd, const std::string& what, TimePoint deadline,
                           const DeathWatch& deaths) {
  auto ready = PollUntil(fd, POLLOUT, deadline, deaths);
  if (!ready) return std::move(ready).error().In(what);
  if (!*ready) {
    return Error{ErrorCode::kTimeout, what +
                                          ": no answer: no such host, a firewall in between, or "
                                          "more connections than its listener can take"};
  }
  int cause = 0;
  socklen_t size = sizeof cause;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) != 0) return SystemError(what, errno);
  if (cause != 0) return ConnectError(what, cause);
  return {};
}

}  // namespace

Result<ClientSocket> ClientSocket::Connect(const SocketAddress& peer, TimePoint deadline,
                                           const DeathWatch& deaths) {
  std::string what = "connect to " + peer.ToString();
  Fd fd(socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError(what, errno);
  if (connect(fd.get(), peer.raw(), peer.raw_size()) != 0) {
    // A connect interrupted by a signal continues in the background.
    if (errno != EINPROGRESS && errno != EINTR) return ConnectError(what, errno);
    auto done = FinishConnect(fd.get(), what, deadline, deaths);
    if (!done) return std::move(done).error();
  }
  auto local = SocketAddress::LocalOf(fd.get());
  if (!local) return std::move(local).error().In(what);
  // If no process listens on a port of the ephemeral range, the kernel may give
  // that port to our end, and the socket connects to itself.
  if (local->ToString() == peer.ToString()) return ConnectError(what, ECONNREFUSED);
  SetOptions(fd.get());
  return ClientSocket(std::move(fd), *local, peer);
}

Result<void> ClientSocket::Send(std::string_view bytes, TimePoint deadline,
                                const DeathWatch& deaths) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      auto ready = PollUntil(fd_.get(), POLLOUT, deadline, deaths);
      if (!ready) return std::move(ready).error();
      if (!*ready) return TimeoutError("send to " + peer_.ToString());
    } else if (errno != EINTR) {
      return SocketError("send to " + peer_.ToString(), errno);
    }
  }
  return {};
}

Result<void> ClientSocket::Receive(std::span<char> bytes, TimePoint deadline,
                                   const DeathWatch& deaths) {
  while (!bytes.empty()) {
    ssize_t received = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<size_t>(received));
    } else if (received == 0) {
      return Error{ErrorCode::kPeerLost,
                   "receive from " + peer_.ToString() + ": the peer closed the connection"};
    } else if (errno == EAGAIN) {
      auto ready = WaitReadable(deadline, deaths);
      if (!ready) return std::move(ready).error();
      if (!*ready) return TimeoutError("receive from " + peer_.ToString());
    } else if (errno != EINTR) {
      return SocketError("receive from " + peer_.ToString(), errno);
    }
  }
  return {};
}

Result<bool> ClientSocket::WaitReadable(TimePoint deadline, const DeathWatch& deaths) const {
  return PollUntil(fd_.get(), POLLIN, deadline, deaths);
}

}  // namespace rankrun::store
