#include "comm/stream/connection.h"

#include <sys/socket.h>

#include <cerrno>

namespace rankrun::comm::stream {
namespace {

msghdr MessageOf(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // only read
  message.msg_iovlen = parts.size();
  return message;
}

// Calls `move` again after each signal. Returns its result, or the negative
// error.
template <typename Move>
ssize_t Moved(const Move& move) {
  for (;;) {
    ssize_t bytes = move();
    if (bytes >= 0) return bytes;
    if (errno == ENOBUFS) return -EAGAIN;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

ssize_t SocketConnection::Send(std::span<const iovec> parts) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (parts.size() == 1) {  // costs less
    return Moved([&] { return send(fd(), parts[0].iov_base, parts[0].iov_len, kFlags); });
  }
  msghdr message = MessageOf(parts);
  return Moved([&] { return sendmsg(fd(), &message, kFlags); });
}

ssize_t SocketConnection::Receive(std::span<const iovec> parts) {
  if (parts.size() == 1) {
    return Moved([&] { return recv(fd(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT); });
  }
  msghdr message = MessageOf(parts);
  return Moved([&] { return recvmsg(fd(), &message, MSG_DONTWAIT); });
}

void SocketConnection::ShutDown() { shutdown(fd(), SHUT_RDWR); }

}  // namespace rankrun::comm::stream
