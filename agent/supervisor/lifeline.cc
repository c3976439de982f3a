#include "agent/supervisor/lifeline.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
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

Result<std::unique_ptr<Lifeline>> Lifeline::WatchProcess(Loop& loop, pid_t pid,
                                                         std::function<void()> on_end) {
  auto process = ProcessHandle::Open(pid);
  if (!process) return std::move(process).error();
  std::unique_ptr<Lifeline> lifeline(new Lifeline(process->fd(), std::move(on_end)));
  lifeline->process_ = std::move(*process);
  auto poll = Poll::Open(loop, lifeline->fd_, [raw = lifeline.get()] {
    if (raw->process_.HasEnded()) raw->End();
  });
  if (!poll) return std::move(poll).error().In("watch pid " + std::to_string(pid));
  lifeline->poll_ = std::move(*poll);
  lifeline->poll_->Start();
  return lifeline;
}

Result<std::vector<std::unique_ptr<Lifeline>>> Lifeline::WatchAll(
    Loop& loop, const JobSpec& spec, const std::function<void(const std::string&)>& on_end) {
  std::vector<std::unique_ptr<Lifeline>> lifelines;
  if (spec.lifeline) {
    auto watched = Watch(loop, *spec.lifeline,
                         [on_end] { on_end("--lifeline: the program that started this job"); });
    if (!watched) return std::move(watched).error();
    lifelines.push_back(std::move(*watched));
  }
  if (!spec.mpirun) return lifelines;
  auto ended = [on_end, who = "mpirun (pid " + std::to_string(*spec.mpirun) + ")"] { on_end(who); };
  auto watched = WatchProcess(loop, *spec.mpirun, ended);
  if (watched) {
    lifelines.push_back(std::move(*watched));
  } else if (watched.error().code == ErrorCode::kNotFound) {
    loop.Post(ended);
  } else {
    LogWarn("the job goes on if mpirun ends: " + watched.error().message);
  }
  return lifelines;
}

void Lifeline::End() {
  poll_->Stop();
  on_end_();
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
  End();
}

}  // namespace rankrun::agent
