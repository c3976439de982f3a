#include "base/uv/uv_connector.h"

#include <uv.h>

#include <cerrno>
#include <utility>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"

namespace rankrun {
namespace {

constexpr unsigned kKeepAliveSeconds = 60;

bool IsToItself(uv_tcp_t* handle) {
  uv_os_fd_t fd;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(handle), &fd) != 0) return false;
  auto local = SocketAddress::LocalOf(fd);
  auto peer = SocketAddress::PeerOf(fd);
  return local && peer && local->port() == peer->port() && local->Bytes() == peer->Bytes();
}

}  // namespace

struct Connector::Trampolines {
  static void Connected(uv_connect_t* request, int status) {
    std::unique_ptr<uv_connect_t> done(request);
    if (auto* self = static_cast<Connector*>(request->handle->data)) self->OnConnected(status);
  }
};

Connector::Connector(Loop& loop, const SocketAddress& address, std::chrono::milliseconds timeout,
                     OnDone on_done)
    : address_(address),
      on_done_(std::move(on_done)),
      handle_(new uv_tcp_t{}),
      deadline_(loop, [this] { Fail(failure_ == 0 ? ETIMEDOUT : failure_); }) {
  uv_tcp_init(loop.raw(), handle_.get());  // cannot fail without a socket
  handle_->data = this;
  auto request = std::make_unique<uv_connect_t>();
  int status = uv_tcp_connect(request.get(), handle_.get(), address_.raw(), Trampolines::Connected);
  if (status == 0) {
    request.release();
  } else {
    failure_ = -status;
  }
  deadline_.Start(status == 0 ? timeout : std::chrono::milliseconds(0));
}

Connector::~Connector() = default;

void Connector::OnConnected(int status) {
  if (done_) return;
  if (status == 0 && IsToItself(handle_.get())) status = UV_ECONNREFUSED;
  if (status != 0) return Fail(-status);
  done_ = true;
  deadline_.Stop();
  uv_tcp_nodelay(handle_.get(), 1);
  uv_tcp_keepalive(handle_.get(), 1, kKeepAliveSeconds);
  on_done_(std::make_unique<Stream>(std::move(handle_), address_));
}

void Connector::Fail(int errno_value) {
  if (done_) return;
  done_ = true;
  deadline_.Stop();
  failure_ = errno_value;
  handle_.reset();  // stop waiting for an answer
  on_done_(SystemError("connect to " + address_.ToString(), errno_value));
}

}  // namespace rankrun
