#include "agent/output/stdin_feed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {

StdinFeed::StdinFeed(Loop& loop, StdinSource& source, int workers)
    : loop_(loop), source_(source), readers_(static_cast<size_t>(workers)), unsettled_(workers) {}

StdinFeed::~StdinFeed() {
  size_t taken_bytes = 0;
  for (const Reader& reader : readers_) taken_bytes = std::max(taken_bytes, reader.sent_bytes);
  source_.GiveBack(piece_.substr(taken_bytes));
}

Result<void> StdinFeed::Prepare(int local_rank) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
  Reader& reader = At(local_rank);
  reader.poll.reset();
  reader.worker_end.Reset(ends[0]);
  reader.write_end.Reset(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // affects this end only
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
  if (unsettled_ == 0) ReadMore();
}

void StdinFeed::ReadMore() {
  source_.Read([this](std::string bytes) { OnRead(std::move(bytes)); });
}

void StdinFeed::OnRead(std::string bytes) {
  piece_ = std::move(bytes);
  for (Reader& reader : readers_) {
    reader.sent_bytes = 0;
    if (piece_.empty()) {
      reader.poll.reset();
      reader.write_end.Reset();
    } else if (!reader.left_out()) {
      reader.poll->Start();
    }
  }
}

void StdinFeed::Send(Reader& reader) {
  std::string_view rest = std::string_view(piece_).substr(reader.sent_bytes);
  ssize_t count = write(reader.write_end.get(), rest.data(), rest.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) {
    reader.poll->Stop();
    reader.closed = true;  // the poll still uses the descriptor
    return;
  }
  reader.sent_bytes += static_cast<size_t>(count);
  if (reader.sent_bytes == piece_.size()) reader.poll->Stop();
}

void StdinFeed::Continue() {
  bool all_have_it = std::ranges::all_of(readers_, [this](const Reader& reader) {
    return reader.left_out() || reader.sent_bytes == piece_.size();
  });
  bool anybody =
      std::ranges::any_of(readers_, [](const Reader& reader) { return !reader.left_out(); });
  if (all_have_it && anybody) ReadMore();
}

}  // namespace rankrun::agent
