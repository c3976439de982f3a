#include "agent/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "agent/descendants.h"
#include "base/check.h"
#include "base/log.h"
#include "base/uv_loop.h"

namespace rankrun::agent {

Worker::Worker(Loop& loop, int local_rank, Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)) {
  record_.global_rank = record_.local_rank = local_rank;  // one node: they are the same
}

Result<void> Worker::Prepare() {
  auto page = StatusPage::Create();
  if (!page) return std::move(page).error();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  auto poll = Poll::Open(loop_, read_end.get(), [this] { ReadStderr(); });
  if (!poll) return std::move(poll).error();
  status_page_ = std::move(*page);
  stderr_poll_ = std::move(*poll);
  stderr_read_ = std::move(read_end);
  stderr_write_ = std::move(write_end);
  return {};
}

void Worker::Equip(SpawnSpec& spec) const {
  spec.stderr_fd = stderr_write_.get();
  spec.status_page_fd = status_page_->fd();
}

void Worker::OnStarted(SpawnedProcess process) {
  stderr_write_.Reset();
  pid_ = process.pid;
  record_.pid = process.pid;
  pidfd_ = std::move(process.pidfd);
  auto poll = Poll::Open(loop_, pidfd_.get(), [this] { CheckExit(); });
  RANKRUN_CHECK(static_cast<bool>(poll), "a pidfd cannot be watched");
  exit_poll_ = std::move(*poll);
  exit_poll_->Start();
  stderr_poll_->Start();
  for (int signal_number : std::exchange(early_signals_, {})) Pass(signal_number);
}

void Worker::OnStartFailed(Error error) {
  stderr_write_.Reset();
  record_.start_error = std::move(error);
}

void Worker::Signal(int signal_number) {
  if (!pid_) return;
  if (record_.sent_signal == SIGKILL) {
    LogWarn("rank " + std::to_string(record_.global_rank) +
            " has not died of SIGKILL: " + DescribeProcess(*pid_));
  }
  record_.sent_signal = signal_number;
  kill(-*pid_, signal_number);
  kill(-*pid_, SIGCONT);
}

void Worker::Pass(int signal_number) {
  if (record_.pid == 0) early_signals_.push_back(signal_number);  // it may run already
  if (!pid_) return;
  record_.passed_signal = signal_number;
  kill(-*pid_, signal_number);
}

void Worker::CheckExit() {
  if (!pid_) return;
  record_.exit = ReapByPidfd(pidfd_.get());
  if (!record_.exit) return;
  record_.ended = std::chrono::steady_clock::now();
  pid_.reset();
  exit_poll_->Stop();
  ReadStderr();
  callbacks_.on_exit();
}

WorkerRecord Worker::TakeRecord() {
  if (stderr_poll_ != nullptr) {
    ReadStderr();  // what the last of its descendants wrote
    stderr_poll_->Stop();
  }
  if (std::string rest = lines_.TakeRest(); !rest.empty()) callbacks_.on_stderr(rest + "\n");
  record_.stderr_tail = tail_.Tail();
  return std::move(record_);
}

void Worker::PauseStderr() {
  if (stderr_poll_ != nullptr) stderr_poll_->Stop();
}

void Worker::ResumeStderr() {
  if (stderr_poll_ != nullptr && record_.pid != 0) stderr_poll_->Start();
}

void Worker::ReadStderr() {
  thread_local std::array<char, TailBuffer::kKeptBytes> buffer;
  ssize_t count = read(stderr_read_.get(), buffer.data(), buffer.size());
  if (count == 0) stderr_poll_->Stop();  // closed by all who had it
  if (count <= 0) return;
  std::string_view bytes(buffer.data(), static_cast<size_t>(count));
  tail_.Add(bytes);
  if (std::string lines = lines_.Add(bytes); !lines.empty()) callbacks_.on_stderr(lines);
}

}  // namespace rankrun::agent
