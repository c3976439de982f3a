#include "base/uv/uv_listener.h"

#include <uv.h>

#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/net/listen_socket.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"

namespace rankrun {
namespace {

// The kernel limits this to net.core.somaxconn.
constexpr int kMaxBacklog = 65535;
constexpr unsigned kKeepAliveSeconds = 60;
constexpr int kListenAttempts = 6;
constexpr uint64_t kMaxPauseNs = 500'000;

UvHandle<uv_tcp_s> NewTcpHandle(Loop& loop) {
  UvHandle<uv_tcp_s> handle(new uv_tcp_t{});
  uv_tcp_init(loop.raw(), handle.get());  // cannot fail without a socket
  return handle;
}

bool IsBound(const uv_tcp_t& handle) {
  uv_os_fd_t fd;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(&handle), &fd) != 0) return false;
  auto address = SocketAddress::LocalOf(fd);
  return address && address->port() != 0;
}

// If two sockets bound to the same port begin to listen within a microsecond,
// the kernel may refuse both. Each then retries after a different pause.
int ListenOn(uv_tcp_t& handle, uv_connection_cb on_connection) {
  auto* stream = reinterpret_cast<uv_stream_t*>(&handle);
  int status = uv_listen(stream, kMaxBacklog, on_connection);
  for (int i = 1; status == UV_EADDRINUSE && i < kListenAttempts && IsBound(handle); ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(uv_hrtime() % kMaxPauseNs));
    status = uv_listen(stream, kMaxBacklog, on_connection);
  }
  return status;
}

}  // namespace

struct Listener::Trampolines {
  static void Connection(uv_stream_t* handle, int status) {
    auto* self = static_cast<Listener*>(handle->data);
    if (self == nullptr) return;
    if (status < 0) {
      LogWarn(SystemError("accept on " + self->address_.ToString(), -status).message);
      return;
    }
    UvHandle<uv_tcp_s> accepted = NewTcpHandle(self->loop_);
    if (uv_accept(handle, reinterpret_cast<uv_stream_t*>(accepted.get())) != 0) return;
    uv_tcp_nodelay(accepted.get(), 1);
    uv_tcp_keepalive(accepted.get(), 1, kKeepAliveSeconds);
    uv_os_fd_t fd;
    if (uv_fileno(reinterpret_cast<uv_handle_t*>(accepted.get()), &fd) != 0) return;
    auto peer = SocketAddress::PeerOf(fd);
    if (!peer) return;  // closed between connect and accept
    self->on_accept_(std::make_unique<Stream>(std::move(accepted), *peer));
  }
};

Listener::Listener(Loop& loop, OnAccept on_accept)
    : loop_(loop), on_accept_(std::move(on_accept)), handle_(NewTcpHandle(loop)) {
  handle_->data = this;
}

Result<std::unique_ptr<Listener>> Listener::Open(Loop& loop, const SocketAddress& address,
                                                 OnAccept on_accept) {
  loop.AssertOnLoop();
  std::unique_ptr<Listener> listener(new Listener(loop, std::move(on_accept)));
  uv_tcp_t* handle = listener->handle_.get();
  unsigned flags = address.family() == AF_INET6 ? static_cast<unsigned>(UV_TCP_IPV6ONLY) : 0U;
  int status = uv_tcp_bind(handle, address.raw(), flags);
  if (status == 0) status = ListenOn(*handle, Trampolines::Connection);
  if (status != 0) return SystemError("listen on " + address.ToString(), -status);
  uv_os_fd_t fd;
  uv_fileno(reinterpret_cast<uv_handle_t*>(handle), &fd);
  auto bound = SocketAddress::LocalOf(fd);
  if (!bound) return std::move(bound).error();
  listener->address_ = *bound;
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::Adopt(Loop& loop, Fd socket, OnAccept on_accept) {
  loop.AssertOnLoop();
  auto bound = ListenSocketAddress(socket.get());
  if (!bound) return std::move(bound).error();
  std::unique_ptr<Listener> listener(new Listener(loop, std::move(on_accept)));
  listener->address_ = *bound;
  uv_tcp_t* handle = listener->handle_.get();
  fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  int status = uv_tcp_open(handle, socket.get());
  if (status == 0) {
    static_cast<void>(socket.Release());  // the handle closes it from now on
    status = ListenOn(*handle, Trampolines::Connection);
  }
  if (status != 0) return SystemError("listen on " + bound->ToString(), -status);
  return listener;
}

}  // namespace rankrun
