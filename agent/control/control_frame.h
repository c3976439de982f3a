#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::agent {

// Frames of the control plane: a length of 4 bytes, the most significant one
// first, and a payload of that length.

// Largest payload.
constexpr size_t kMaxFrameBytes = size_t{1} << 20;

// Returns `payload` as a frame. It must not be larger than kMaxFrameBytes.
std::string EncodeFrame(std::string_view payload);

// Reads frames from a stream that arrives in parts of any size. Holds at most
// twice as many bytes as have arrived of a payload, whatever length its head
// announces. Pure.
// Thread: one at a time.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  // Sets the limit for frames whose length has not arrived yet.
  void SetMaxBytes(size_t max_bytes) { max_bytes_ = max_bytes; }

  // Returns the payload of the next frame, or nothing if it is incomplete.
  // Removes the bytes that it has read from the front of `bytes`: all of them
  // if it returns nothing.
  // Errors: kProtocol for a length over the limit; the stream cannot be read
  // on.
  Result<std::optional<std::string>> Next(std::string_view& bytes);

  bool is_within_frame() const { return head_bytes_ > 0; }
  size_t held_bytes() const;

 private:
  static constexpr size_t kHeadBytes = 4;

  bool ReadHead(std::string_view& bytes);
  void Append(std::string_view part);

  size_t max_bytes_;
  std::array<unsigned char, kHeadBytes> head_{};
  size_t head_bytes_ = 0;  // number of bytes of head_ that have arrived
  size_t length_ = 0;      // of the payload; valid once head_ is complete
  std::string payload_;
};

}  // namespace rankrun::agent
