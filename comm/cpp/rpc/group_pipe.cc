#include "comm/cpp/rpc/group_pipe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <rankrun/dist_error.h>

namespace rankrun::rpc {
namespace {

Tensor BytesOf(void* data, size_t bytes) { return {data, DType::kUInt8, bytes}; }

bool HasFailed(const Work& work) { return work.exception() != nullptr; }

}  // namespace

GroupPipe::GroupPipe(ProcessGroup& group, Fd socket, std::function<void()> wake)
    : group_(group),
      other_{1 - group.group_rank()},
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      out_bytes_(kMaxBytes) {
  PostBlock();
}

void GroupPipe::Advance() {
  try {
    bool has_moved = true;
    while (has_moved && !is_over_) {
      has_moved = AdvanceOut();
      has_moved = AdvanceIn() || has_moved;
    }
  } catch (const DistError&) {
    Lose();
  }
}

bool GroupPipe::AdvanceOut() {
  if (is_sending_) {
    if (!std::all_of(sends_.begin(), sends_.end(), [](const Work& w) { return w.IsCompleted(); })) {
      return false;
    }
    if (std::any_of(sends_.begin(), sends_.end(), HasFailed)) Lose();
    is_sending_ = false;
    sends_.clear();
    is_over_ = is_over_ || (has_sent_end_ && has_received_end_);
    return true;
  }
  if (has_sent_end_) return false;
  ssize_t got = recv(socket_.get(), out_bytes_.data(), out_bytes_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    out_.bytes = kEnd;
    has_sent_end_ = true;
    SendBlock();
  } else {
    SendBytes(static_cast<size_t>(got));
  }
  return true;
}

void GroupPipe::SendBytes(size_t bytes) {
  out_.bytes = static_cast<uint32_t>(bytes);
  if (bytes <= Block::kInside) std::memcpy(out_.inside.data(), out_bytes_.data(), bytes);
  SendBlock();
  if (bytes <= Block::kInside) return;
  sends_.push_back(group_.ISend(BytesOf(out_bytes_.data(), bytes), other_));
  Take(sends_.back());
}

void GroupPipe::SendBlock() {
  is_sending_ = true;
  sends_.push_back(group_.ISend(BytesOf(&out_, sizeof out_), other_));
  Take(sends_.back());
}

void GroupPipe::Take(const Work& work) const {
  if (!work.IsCompleted()) work.Then(wake_);
}

bool GroupPipe::AdvanceIn() {
  if (delivered_ < to_deliver_.size() && !Deliver()) return false;
  if (has_received_end_ || !receive_.IsCompleted()) return false;
  if (HasFailed(receive_)) {
    Lose();
    return true;
  }
  if (std::exchange(is_in_bytes_, false)) {
    to_deliver_ = in_bytes_;
    delivered_ = 0;
    PostBlock();
    return true;
  }
  return OnBlock();
}

bool GroupPipe::OnBlock() {
  if (in_.bytes == kEnd) {
    has_received_end_ = true;
    shutdown(socket_.get(), SHUT_WR);
    is_over_ = has_sent_end_ && !is_sending_;
  } else if (in_.bytes > kMaxBytes) {
    Lose();  // the other rank sends no block
  } else if (in_.bytes > Block::kInside) {
    in_bytes_.resize(in_.bytes);
    is_in_bytes_ = true;
    receive_ = group_.IRecv(BytesOf(in_bytes_.data(), in_bytes_.size()), Peer(other_));
    Take(receive_);
  } else {
    in_bytes_.assign(in_.inside.begin(), in_.inside.begin() + in_.bytes);
    to_deliver_ = in_bytes_;
    delivered_ = 0;
    PostBlock();
  }
  return true;
}

void GroupPipe::PostBlock() {
  receive_ = group_.IRecv(BytesOf(&in_, sizeof in_), Peer(other_));
  Take(receive_);
}

// Returns whether all is delivered.
bool GroupPipe::Deliver() {
  while (delivered_ < to_deliver_.size()) {
    auto rest = to_deliver_.subspan(delivered_);
    ssize_t put = send(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    // A worker that has closed its end reads no more; the rest is dropped.
    delivered_ = put < 0 ? to_deliver_.size() : delivered_ + static_cast<size_t>(put);
  }
  to_deliver_ = {};
  delivered_ = 0;
  return true;
}

void GroupPipe::Lose() {
  is_over_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace rankrun::rpc
