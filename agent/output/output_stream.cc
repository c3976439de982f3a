#include "agent/output/output_stream.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/log.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
// More than the two buffers of a terminal hold; FIONREAD does not count both.
constexpr size_t kMinDrainedBytes = 256 * 1024;

}  // namespace

OutputStream::OutputStream(Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {}

Result<void> OutputStream::Prepare() {
  poll_.reset();
  auto channel = options_.terminal ? OutputChannel::OpenTerminal(STDOUT_FILENO)
                                   : OutputChannel::OpenPipe(options_.pipe_bytes);
  if (!channel && options_.terminal && channel.error().code != ErrorCode::kExhausted) {
    LogWarn(channel.error().message + "; a worker's standard output is a pipe");
    channel = OutputChannel::OpenPipe(options_.pipe_bytes);
  }
  if (!channel) return std::move(channel).error();
  auto poll = Poll::Open(loop_, channel->read_end.get(), [this] {
    held_ = SinksFull();
    if (held_ || !ReadOnce()) poll_->Stop();
  });
  if (!poll) return std::move(poll).error();
  channel_ = std::move(*channel);
  poll_ = std::move(*poll);
  return {};
}

void OutputStream::TakeBack() {
  poll_.reset();
  channel_ = {};
}

void OutputStream::Start() {
  channel_.worker_end.Reset();
  started_ = true;
  poll_->Start();
}

bool OutputStream::FollowTerminalSize() {
  return CopyTerminalSize(STDOUT_FILENO, channel_.read_end.get());
}

void OutputStream::Resume() {
  if (!held_ || ended_ || SinksFull()) return;
  held_ = false;
  poll_->Start();
}

void OutputStream::CatchUp() {
  if (started_ && !ended_ && !SinksFull()) Drain();
}

void OutputStream::ShowOpenLine() {
  for (auto& sink : options_.sinks) sink->ShowOpenLine();
}

void OutputStream::Finish() {
  if (started_ && !ended_) Drain();
  if (poll_ != nullptr) poll_->Stop();
  ended_ = true;
  for (auto& sink : options_.sinks) sink->Finish();
}

void OutputStream::Release() {
  if (!ended_) return;
  poll_.reset();
  channel_.read_end.Reset();
}

bool OutputStream::SinksFull() const {
  return std::ranges::any_of(options_.sinks, [](const auto& sink) { return sink->full(); });
}

// Returns false at the end, when all writers have closed the descriptor. A
// terminal reports EIO then.
bool OutputStream::ReadOnce() {
  // On the heap, because the start of each thread clears its thread-local arrays.
  thread_local const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
  if (ended_) return false;
  ssize_t count = read(channel_.read_end.get(), buffer.get(), kReadBytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  ended_ = count <= 0;
  if (ended_) return false;
  std::string_view bytes(buffer.get(), static_cast<size_t>(count));
  tail_.Add(bytes);
  last_read_ = std::chrono::steady_clock::now();
  for (auto& sink : options_.sinks) sink->Write(bytes);
  return true;
}

// Bounded, because other processes may go on writing.
void OutputStream::Drain() {
  int there = 0;
  ioctl(channel_.read_end.get(), FIONREAD, &there);
  size_t most = std::max(static_cast<size_t>(there), kMinDrainedBytes);
  for (size_t before = tail_.total_bytes(); tail_.total_bytes() - before < most;) {
    size_t known = tail_.total_bytes();
    if (!ReadOnce() || tail_.total_bytes() == known) return;
  }
}

}  // namespace rankrun::agent
