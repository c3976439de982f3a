#include "base/uv/uv_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <uv.h>

#include <array>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/fd.h"

namespace rankrun {
namespace {

// A write in progress: owns its bytes until libuv calls back.
struct WriteRequest {
  uv_write_t request;
  std::string bytes;
};

// Prefetches two cache lines; nothing for a null pointer.
void Prefetch(const void* bytes) {
  if (bytes == nullptr) return;
  constexpr size_t kLineBytes = 64;
  __builtin_prefetch(bytes);
  __builtin_prefetch(static_cast<const char*>(bytes) + kLineBytes);
}

uv_stream_t* AsStream(uv_tcp_t* handle) { return reinterpret_cast<uv_stream_t*>(handle); }

}  // namespace

struct Stream::Trampolines {
  // libuv fills a buffer before it asks for another, so one per thread serves
  // all connections.
  static void Allocate(uv_handle_t* handle, size_t, uv_buf_t* buffer) {
    if (auto* self = static_cast<Stream*>(handle->data))
      Prefetch(self->callbacks_.needed_by_on_data);
    // On the heap, because the start of each thread clears its thread-local arrays.
    constexpr unsigned kBytes = 65536;
    thread_local const auto bytes = std::make_unique_for_overwrite<char[]>(kBytes);
    *buffer = uv_buf_init(bytes.get(), kBytes);
  }

  static void Read(uv_stream_t* handle, ssize_t count, const uv_buf_t* buffer) {
    auto* self = static_cast<Stream*>(handle->data);
    if (self == nullptr || count == 0) return;  // 0: no data after all
    if (count > 0) {
      self->callbacks_.on_data({buffer->base, static_cast<size_t>(count)});
    } else if (count == UV_EOF) {
      self->End(std::nullopt);
    } else {
      self->End(SystemError("read from " + self->peer_.ToString(), static_cast<int>(-count)));
    }
  }

  static void Written(uv_write_t* request, int status) {
    std::unique_ptr<WriteRequest> done(reinterpret_cast<WriteRequest*>(request));
    auto* self = static_cast<Stream*>(request->handle->data);
    if (self == nullptr) return;
    self->queued_bytes_ -= done->bytes.size();
    if (status < 0) {
      self->End(SystemError("write to " + self->peer_.ToString(), -status));
    } else if (self->queued_bytes_ == 0 && self->callbacks_.on_drained) {
      self->callbacks_.on_drained();
    }
  }
};

Stream::Stream(UvHandle<uv_tcp_s> handle, const SocketAddress& peer)
    : handle_(std::move(handle)), peer_(peer) {
  handle_->data = this;
}

void Stream::Start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  ResumeReading();
}

void Stream::Write(std::string& bytes) {
  if (ended_) bytes.clear();
  if (bytes.empty()) return;
  size_t sent = 0;
  if (queued_bytes_ == 0) {
    uv_buf_t buffer = uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
    int count = uv_try_write(AsStream(handle_.get()), &buffer, 1);
    if (count > 0) sent = static_cast<size_t>(count);
    if (sent == bytes.size()) {
      bytes.clear();
      return;
    }
  }
  // If uv_try_write has failed, uv_write meets the same error and passes it to
  // Written.
  auto write = std::make_unique<WriteRequest>();
  write->bytes = std::exchange(bytes, {});
  uv_buf_t rest =
      uv_buf_init(write->bytes.data() + sent, static_cast<unsigned>(write->bytes.size() - sent));
  int status = uv_write(&write->request, AsStream(handle_.get()), &rest, 1, Trampolines::Written);
  RANKRUN_CHECK(status == 0, "a write to an open connection cannot be queued");
  queued_bytes_ += write->bytes.size();
  write.release();
}

void Stream::PauseReading() { uv_read_stop(AsStream(handle_.get())); }

void Stream::ResumeReading() {
  if (ended_) return;
  // uv_read_start returns UV_EALREADY if reading has started; that is no error.
  uv_read_start(AsStream(handle_.get()), Trampolines::Allocate, Trampolines::Read);
}

void Stream::DiscardInput() {
  // Upper bound of what the kernel buffers for a connection. A peer that keeps
  // sending gets a reset.
  constexpr size_t kMaxBytes = size_t{8} << 20;
  uv_os_fd_t fd;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(handle_.get()), &fd) != 0) return;
  std::array<char, 65536> bytes;
  for (size_t discarded = 0; discarded < kMaxBytes;) {
    ssize_t count = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    discarded += static_cast<size_t>(count);
  }
}

Result<SocketAddress> Stream::LocalAddress() const {
  uv_os_fd_t fd = Fd::kNone;
  uv_fileno(reinterpret_cast<uv_handle_t*>(handle_.get()), &fd);  // the next call reports a failure
  return SocketAddress::LocalOf(fd);
}

bool Stream::IsEstablished() const {
  uv_os_fd_t fd = Fd::kNone;
  uv_fileno(reinterpret_cast<uv_handle_t*>(handle_.get()), &fd);  // the next call reports a failure
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

void Stream::End(std::optional<Error> error) {
  if (ended_) return;
  ended_ = true;
  PauseReading();
  if (callbacks_.on_end) callbacks_.on_end(std::move(error));
}

}  // namespace rankrun
