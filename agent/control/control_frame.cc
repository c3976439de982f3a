#include "agent/control/control_frame.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rankrun::agent {

std::string EncodeFrame(std::string_view payload) {
  RANKRUN_CHECK(payload.size() <= kMaxFrameBytes, "a control message is too large to be sent");
  std::string frame;
  frame.reserve(sizeof(uint32_t) + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>(payload.size() >> shift & 0xFF);
  }
  frame += payload;
  return frame;
}

Result<std::optional<std::string>> FrameReader::Next(std::string_view& bytes) {
  if (head_bytes_ < kHeadBytes) {
    if (!ReadHead(bytes)) return std::optional<std::string>();
    if (length_ > max_bytes_) {
      return Error{ErrorCode::kProtocol, "a frame of " + std::to_string(length_) +
                                             " bytes is over the limit of " +
                                             std::to_string(max_bytes_)};
    }
  }
  std::string_view part = bytes.substr(0, length_ - payload_.size());
  bytes.remove_prefix(part.size());
  Append(part);
  if (payload_.size() < length_) return std::optional<std::string>();
  head_bytes_ = 0;
  return std::optional(std::exchange(payload_, {}));
}

bool FrameReader::ReadHead(std::string_view& bytes) {
  size_t part = std::min(bytes.size(), kHeadBytes - head_bytes_);
  std::copy_n(bytes.data(), part, head_.data() + head_bytes_);
  bytes.remove_prefix(part);
  head_bytes_ += part;
  if (head_bytes_ < kHeadBytes) return false;
  length_ = 0;
  for (unsigned char byte : head_) length_ = length_ << 8 | byte;
  return true;
}

// Reserves at most the announced length, and at most twice as many bytes as
// have arrived.
void FrameReader::Append(std::string_view part) {
  size_t needed = payload_.size() + part.size();
  if (needed > payload_.capacity()) {
    std::string grown;  // payload_.reserve() would at least double its capacity
    grown.reserve(std::min(length_, 2 * needed));
    grown += payload_;
    payload_.swap(grown);
  }
  payload_ += part;
}

size_t FrameReader::held_bytes() const {
  bool on_heap = payload_.capacity() >= sizeof(std::string);
  return on_heap ? payload_.capacity() : 0;
}

}  // namespace rankrun::agent
