#include "agent/stdin_feed.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/uv_loop.h"
#include "base/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;

}  // namespace

struct StdinFeed::PoolRead {
  StdinFeed* owner;  // null once that is gone
  int fd;
  std::string bytes = {};
  ssize_t count = 0;
};

StdinFeed::StdinFeed(Loop& loop, int source, int workers)
    : loop_(loop), source_(source), readers_(static_cast<size_t>(workers)), unsettled_(workers) {}

StdinFeed::~StdinFeed() {
  if (pool_read_ != nullptr) pool_read_->owner = nullptr;
}

Result<void> StdinFeed::Prepare(int local_rank) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
  Reader& reader = At(local_rank);
  reader.poll.reset();
  reader.worker_end.Reset(ends[0]);
  reader.write_end.Reset(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // of this end only
  auto poll = Poll::Open(
      loop_, ends[1],
      [this, &reader] {
        Send(reader);
        Continue();
      },
      Poll::Event::kWritable);
  if (!poll) return std::move(poll).error();
  reader.poll = std::move(*poll);
  return {};
}

int StdinFeed::worker_end(int local_rank) const {
  return readers_[static_cast<size_t>(local_rank)].worker_end.get();
}

void StdinFeed::OnStarted(int local_rank) {
  At(local_rank).worker_end.Reset();
  OnSettled();
}

void StdinFeed::OnGivenUp(int local_rank) {
  At(local_rank).poll.reset();
  At(local_rank).worker_end.Reset();
  At(local_rank).write_end.Reset();
  OnSettled();
}

void StdinFeed::OnSettled() {
  unsettled_ -= 1;
  if (unsettled_ > 0) return;
  OpenSource();
  ReadMore();
}

// Other processes may share the source, so it cannot be made non-blocking
// itself; a pipe or a terminal can be opened once more.
void StdinFeed::OpenSource() {
  struct stat status {};
  fstat(source_, &status);
  if (S_ISFIFO(status.st_mode) || isatty(source_) != 0) {
    std::string path = "/proc/self/fd/" + std::to_string(source_);
    reopened_.Reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!reopened_ && !S_ISSOCK(status.st_mode)) return;
  auto poll = Poll::Open(loop_, reopened_ ? reopened_.get() : source_, [this] { ReadReady(); });
  if (poll) poll_ = std::move(*poll);
}

void StdinFeed::ReadMore() {
  if (poll_ != nullptr) {
    poll_->Start();
  } else {
    ReadInPool();
  }
}

void StdinFeed::ReadReady() {
  std::string bytes(kPieceBytes, '\0');
  ssize_t count = reopened_ ? read(reopened_.get(), bytes.data(), bytes.size())
                            : recv(source_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  poll_->Stop();
  OnRead(count, std::move(bytes));
}

void StdinFeed::ReadInPool() {
  auto job = std::make_shared<PoolRead>(PoolRead{.owner = this, .fd = source_});
  pool_read_ = job;
  RunInPool(
      loop_,
      [job] {
        job->bytes.resize(kPieceBytes);
        do {
          job->count = read(job->fd, job->bytes.data(), job->bytes.size());
        } while (job->count < 0 && errno == EINTR);
      },
      [job] {
        if (job->owner != nullptr) job->owner->OnRead(job->count, std::move(job->bytes));
      });
}

// An input that cannot be read ends, as it does for a program that reads it.
void StdinFeed::OnRead(ssize_t count, std::string bytes) {
  pool_read_.reset();
  if (count <= 0) {
    for (Reader& reader : readers_) {
      reader.poll.reset();
      reader.write_end.Reset();
    }
    return;
  }
  bytes.resize(static_cast<size_t>(count));
  piece_ = std::move(bytes);
  for (Reader& reader : readers_) {
    reader.sent_bytes = 0;
    if (reader.write_end) reader.poll->Start();
  }
}

void StdinFeed::Send(Reader& reader) {
  std::string_view rest = std::string_view(piece_).substr(reader.sent_bytes);
  ssize_t count = write(reader.write_end.get(), rest.data(), rest.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) {
    reader.poll->Stop();
    reader.write_end.Reset();
    return;
  }
  reader.sent_bytes += static_cast<size_t>(count);
  if (reader.sent_bytes == piece_.size()) reader.poll->Stop();
}

void StdinFeed::Continue() {
  bool all_have_it = std::ranges::all_of(readers_, [this](const Reader& reader) {
    return !reader.write_end || reader.sent_bytes == piece_.size();
  });
  bool anybody = std::ranges::any_of(
      readers_, [](const Reader& reader) { return static_cast<bool>(reader.write_end); });
  if (all_have_it && anybody) ReadMore();
}

}  // namespace rankrun::agent
