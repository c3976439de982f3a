#include "comm/stream/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/stream/limits.h"

namespace rankrun::comm::stream {
namespace {

// Returns whether a peer of this version sends such frames.
bool IsPossible(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kMessage:
      return header.bytes <= kMaxEagerBytes;
    case FrameKind::kMessageData:
      return header.bytes > 0 && header.bytes <= kPieceBytes;
    case FrameKind::kFarewell:
      return header.bytes <= kMaxFarewellBytes;
    case FrameKind::kOffer:
    case FrameKind::kAccept:
    case FrameKind::kRefuse:
    case FrameKind::kCall:
    case FrameKind::kProbe:
    case FrameKind::kAnswer:
    case FrameKind::kContinue:
      return header.bytes == 0;
    case FrameKind::kData:
      break;
  }
  return false;
}

}  // namespace

void Channel::Queue(OutgoingFrame frame) {
  if (!lost_by_.empty() || has_failed()) return;
  queue_.push_back(std::move(frame));
  OutgoingFrame& queued = queue_.back();
  if (!queued.owned.empty()) queued.data = {queued.owned.data(), queued.owned.size()};
  queued.header.bytes = queued.data.bytes;
}

bool Channel::Write() {
  if (std::exchange(writes_, true)) return false;
  bool moved = WriteQueued();
  writes_ = false;
  return moved;
}

bool Channel::WriteQueued() {
  bool moved = false;
  while (!queue_.empty() && lost_by_.empty()) {
    OutgoingFrame& frame = queue_.front();
    size_t of_header = std::min(frame.written, sizeof frame.header);
    size_t of_data = frame.written - of_header;
    std::array<iovec, 2> parts{
        iovec{reinterpret_cast<std::byte*>(&frame.header) + of_header,
              sizeof frame.header - of_header},
        iovec{const_cast<std::byte*>(frame.data.data) + of_data, frame.data.bytes - of_data}};
    size_t count = parts[1].iov_len > 0 ? 2 : 1;
    ssize_t written = connection_->Send({parts.data(), count});
    if (written == -EAGAIN) return moved;
    if (written < 0) {
      write_error_ = static_cast<int>(-written);
      queue_.clear();
      return moved;
    }
    moved = true;
    frame.written += static_cast<size_t>(written);
    if (frame.written < sizeof frame.header + frame.data.bytes) continue;
    OutgoingFrame done = std::move(frame);
    queue_.pop_front();
    handler_.OnWritten(peer_, done);
  }
  return moved;
}

bool Channel::Read() {
  bool moved = false;
  while (lost_by_.empty()) {
    size_t kept = buffer_end_ - buffer_begin_;  // less than a header
    std::memmove(buffer_.data(), buffer_.data() + buffer_begin_, kept);
    buffer_begin_ = 0;
    buffer_end_ = kept;
    bool direct = space_ != nullptr && data_left_ > 0;
    std::array<iovec, 2> parts{iovec{space_, data_left_},
                               iovec{buffer_.data() + kept, buffer_.size() - kept}};
    std::span<const iovec> used(parts);
    ssize_t got = connection_->Receive(direct ? used : used.subspan(1));
    if (got == -EAGAIN && !has_failed()) return moved;
    if (got <= 0) {
      Lose(got == -EAGAIN ? write_error_ : static_cast<int>(-got));
      return true;
    }
    moved = true;
    auto bytes = static_cast<size_t>(got);
    size_t to_space = direct ? std::min(bytes, data_left_) : 0;
    if (direct) space_ += to_space;
    data_left_ -= to_space;
    buffer_end_ += bytes - to_space;
    if (!Parse()) return true;
  }
  return moved;
}

// Processes the bytes that have been read. Returns whether the connection goes on.
bool Channel::Parse() {
  for (;;) {
    size_t have = buffer_end_ - buffer_begin_;
    if (!in_frame_) {
      if (have < sizeof header_) return true;
      if (!BeginFrame()) return false;
      continue;
    }
    size_t taken = std::min(have, data_left_);
    if (taken > 0 && space_ != nullptr) {
      std::memcpy(space_, buffer_.data() + buffer_begin_, taken);
      space_ += taken;
    }
    buffer_begin_ += taken;
    data_left_ -= taken;
    if (data_left_ > 0) return true;
    in_frame_ = false;
    handler_.OnFrame(peer_, header_);
    if (!lost_by_.empty()) return false;  // closed by the handler
  }
}

bool Channel::BeginFrame() {
  std::memcpy(&header_, buffer_.data() + buffer_begin_, sizeof header_);
  buffer_begin_ += sizeof header_;
  if (!IsPossible(header_)) {
    lost_by_ = "it sent a frame that this version does not know";
    return false;
  }
  in_frame_ = true;
  data_left_ = header_.bytes;
  space_ = data_left_ > 0 ? handler_.SpaceFor(peer_, header_) : nullptr;
  return lost_by_.empty();
}

void Channel::Release(const std::byte* data, size_t bytes) {
  auto is_inside = [&](const std::byte* place) { return place >= data && place < data + bytes; };
  if (space_ != nullptr && is_inside(space_)) space_ = nullptr;
  std::erase_if(queue_, [&](const OutgoingFrame& frame) {
    return frame.written == 0 && frame.data.bytes > 0 && is_inside(frame.data.data);
  });
  if (queue_.empty()) return;
  OutgoingFrame& begun = queue_.front();
  if (begun.data.bytes == 0 || !is_inside(begun.data.data)) return;
  begun.owned.assign(begun.data.data, begun.data.data + begun.data.bytes);
  begun.data.data = begun.owned.data();
}

void Channel::Lose(int error_number) {
  lost_by_ = error_number == 0 ? "the connection was closed" : std::strerror(error_number);
  queue_.clear();
}

void Channel::Close() {
  if (lost_by_.empty()) lost_by_ = "this rank closed the connection";
  queue_.clear();
  space_ = nullptr;
  connection_->ShutDown();
}

}  // namespace rankrun::comm::stream
