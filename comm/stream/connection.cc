#include "comm/stream/connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

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

class SocketConnection final : public Connection {
 public:
  explicit SocketConnection(Fd socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }
  ssize_t Send(std::span<const iovec> parts) override;
  ssize_t Receive(std::span<const iovec> parts) override;
  void ShutDown() override { shutdown(fd(), SHUT_RDWR); }

 private:
  const Fd socket_;
};

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

}  // namespace

std::unique_ptr<Connection> ConnectionOver(Fd socket) {
  return std::make_unique<SocketConnection>(std::move(socket));
}

}  // namespace rankrun::comm::stream
