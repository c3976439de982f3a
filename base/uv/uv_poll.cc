#include "base/uv/uv_poll.h"

#include <fcntl.h>
#include <uv.h>

#include "base/check.h"
#include "base/uv/uv_loop.h"

namespace rankrun {

Poll::Poll(std::function<void()> on_ready, Event event)
    : on_ready_(std::move(on_ready)), event_(event) {}

Result<std::unique_ptr<Poll>> Poll::Open(Loop& loop, int fd, std::function<void()> on_ready,
                                         Event event) {
  loop.AssertOnLoop();
  std::unique_ptr<Poll> poll(new Poll(std::move(on_ready), event));
  auto handle = std::make_unique<uv_poll_t>();
  if (int status = uv_poll_init(loop.raw(), handle.get(), fd); status != 0) {
    return SystemError("watch a descriptor", -status);
  }
  poll->handle_.reset(handle.release());
  poll->handle_->data = poll.get();
  return poll;
}

Result<std::unique_ptr<Poll>> Poll::OpenShared(Loop& loop, int fd, std::function<void()> on_ready) {
  int flags = fcntl(fd, F_GETFL);
  auto poll = Open(loop, fd, std::move(on_ready));
  // libuv sets O_NONBLOCK once, in Open.
  if (flags >= 0) fcntl(fd, F_SETFL, flags);
  return poll;
}

void Poll::Start() {
  // libuv reports a hang-up or an error as readable or writable as well.
  int events = event_ == Event::kReadable ? UV_READABLE : UV_WRITABLE;
  int status = uv_poll_start(handle_.get(), events, [](uv_poll_t* handle, int, int) {
    if (auto* self = static_cast<Poll*>(handle->data)) self->on_ready_();
  });
  RANKRUN_CHECK(status == 0, "a descriptor that was open cannot be watched");
}

void Poll::Stop() { uv_poll_stop(handle_.get()); }

}  // namespace rankrun
