#include "agent/lifeline.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/uv_loop.h"

namespace rankrun::agent {

Lifeline::Lifeline(int fd, std::function<void()> on_end) : fd_(fd), on_end_(std::move(on_end)) {}

Result<std::unique_ptr<Lifeline>> Lifeline::Watch(Loop& loop, int fd,
                                                  std::function<void()> on_end) {
  const std::string flag = "--lifeline " + std::to_string(fd);
  if (fd <= STDERR_FILENO || IsOurs(fd)) {
    return Error{ErrorCode::kInvalid, flag + ": want a descriptor that rankrun inherits, above 2"};
  }
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY) {
    return Error{ErrorCode::kInvalid, flag + ": want an open descriptor that can be read"};
  }
  std::unique_ptr<Lifeline> lifeline(new Lifeline(fd, std::move(on_end)));
  auto poll = Poll::OpenShared(loop, fd, [raw = lifeline.get()] { raw->OnReadable(); });
  if (!poll) {
    return Error{ErrorCode::kInvalid, flag + ": want a pipe or a socket"};
  }
  lifeline->poll_ = std::move(*poll);
  lifeline->poll_->Start();
  return lifeline;
}

void Lifeline::OnReadable() {
  char forgotten[4096];
  ssize_t count = recv(fd_, forgotten, sizeof forgotten, MSG_DONTWAIT);
  if (count < 0 && errno == ENOTSOCK) {
    // Blocking, and somebody who shares the pipe may have read first.
    pollfd now{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&now, 1, 0) <= 0) return;
    count = read(fd_, forgotten, sizeof forgotten);
  }
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
  poll_->Stop();
  on_end_();
}

}  // namespace rankrun::agent
