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
// first, and so many bytes of payload.

// The most that a payload may have.
constexpr size_t kMostFrameBytes = size_t{1} << 20;

// `payload` as a frame. It must not be larger than kMostFrameBytes.
std::string EncodeFrame(std::string_view payload);

// Takes frames out of a stream, however that is cut. Pure. Holds at most twice
// what has arrived of a payload, whatever length it was announced with.
// Thread: one at a time.
class FrameReader {
 public:
  explicit FrameReader(size_t most_bytes = kMostFrameBytes) : most_bytes_(most_bytes) {}

  // For the frames whose length has not arrived yet.
  void SetMostBytes(size_t most_bytes) { most_bytes_ = most_bytes; }

  // The payload of the next frame, or nothing if it is not complete. Takes away
  // from the front of `bytes` what it has read: all of it if nothing is returned.
  // Errors: kProtocol for a length over the limit; then nothing more can be read.
  Result<std::optional<std::string>> Next(std::string_view& bytes);

  bool is_within_frame() const { return head_bytes_ > 0; }
  size_t held_bytes() const;

 private:
  static constexpr size_t kHeadBytes = 4;

  bool ReadHead(std::string_view& bytes);
  void Append(std::string_view part);

  size_t most_bytes_;
  std::array<unsigned char, kHeadBytes> head_{};
  size_t head_bytes_ = 0;  // how many of them have arrived
  size_t length_ = 0;      // once they all have
  std::string payload_;
};

}  // namespace rankrun::agent
