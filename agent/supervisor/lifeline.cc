#include "agent/supervisor/lifeline.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {

Lifeline::Lifeline(int fd, std::function<void()> on_end) : fd_(fd), on_end_(std::move(on_end)) {}

Result<std::unique_ptr<Lifeline>> Lifeline::Watch(Loop& loop, int fd,
                                                  std::function<void()> on_end) {
  std::string flag = "--lifeline " + std::to_string(fd);
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
  char discarded[4096];
  ssize_t count = recv(fd_, discarded, sizeof discarded, MSG_DONTWAIT);
  if (count < 0 && errno == ENOTSOCK) {
    // A read may block, because another process may share the pipe and read
    // first.
    pollfd now{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&now, 1, 0) <= 0) return;
    count = read(fd_, discarded, sizeof discarded);
  }
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
  poll_->Stop();
  on_end_();
}

}  // namespace rankrun::agent
