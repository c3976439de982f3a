#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/core/backend.h"
#include "comm/stream/connection.h"
#include "comm/stream/frame.h"

namespace rankrun::comm::stream {

// A frame to be sent. Its data is in `owned`, or in memory of the program that
// stays valid until the frame is written or the channel is closed.
struct OutgoingFrame {
  FrameHeader header;
  ConstBlock data{nullptr, 0};
  std::vector<std::byte> owned = {};
  std::shared_ptr<void> context = {};  // of the owner of the frame
  size_t written = 0;
};

// Receiver of the frames of all channels of a group.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // Returns memory for the data of a frame, whose header has arrived; null: the
  // channel discards it. Called if there is data.
  virtual std::byte* SpaceFor(int peer, const FrameHeader& header) = 0;
  // Processes a complete frame.
  virtual void OnFrame(int peer, const FrameHeader& header) = 0;
  virtual void OnWritten(int peer, const OutgoingFrame& frame) = 0;
};

// The control connection to one peer: frames in both directions, without
// waiting. A frame is read when it arrives, whatever this rank waits for.
// Thread: one at a time.
class Channel {
 public:
  Channel(std::unique_ptr<Connection> connection, int peer, FrameHandler& handler)
      : connection_(std::move(connection)), peer_(peer), handler_(handler) {}

  int fd() const { return connection_->fd(); }
  void RefreshFd() { connection_->RefreshFd(); }
  void Queue(OutgoingFrame frame);
  bool has_queued() const { return !queue_.empty(); }
  // Whether the connection has failed to send. The next Read takes the frames that
  // have arrived before, then notes the loss.
  bool has_failed() const { return write_error_ != 0; }

  // Write and read as much as the connection takes and has; return whether anything
  // moved.
  bool Write();
  bool Read();

  // Stops to use memory of the program: copies a half-sent frame, forgets frames
  // that are not begun, and discards data that arrives for it.
  void Release(const std::byte* data, size_t bytes);

  // Why the connection is lost; empty: it is not.
  const std::string& lost_by() const { return lost_by_; }
  // Sends nothing more. Memory of the program is not touched any more.
  void Close();

 private:
  static constexpr size_t kBufferBytes = 16 << 10;

  bool Parse();
  bool BeginFrame();
  bool WriteQueued();
  void Lose(int error_number);

  const std::unique_ptr<Connection> connection_;
  const int peer_;
  FrameHandler& handler_;
  std::string lost_by_;
  int write_error_ = 0;
  std::deque<OutgoingFrame> queue_;
  bool writes_ = false;  // Write is under way, and takes frames that it causes

  FrameHeader header_;     // of the frame under way
  bool in_frame_ = false;  // header_ is complete
  std::byte* space_ = {};  // for the rest of its data; null: discarded
  size_t data_left_ = 0;
  std::array<std::byte, kBufferBytes> buffer_;  // read, not parsed
  size_t buffer_begin_ = 0;
  size_t buffer_end_ = 0;
};

}  // namespace rankrun::comm::stream
