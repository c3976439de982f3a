#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/stream/connection.h"
#include "comm/stream/frame.h"

namespace rankrun::comm::stream {

// One connection that carries the blocks of collectives between this rank
// and a peer. A frame is one block, or the part of it that this stream carries
// beside others. It is written from and read into the program's memory: no copy
// in between, except for data that will be reduced.
// A receive never reads past its own frame, so a frame for a later call waits in
// the connection until that call begins.
// Thread: one at a time.
class Stream {
 public:
  enum class Progress { kNone, kSome, kDone, kClosed };

  explicit Stream(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  int fd() const { return connection_->fd(); }

  // Begin to send or receive a frame. Its blocks are in use until the send or
  // receive is done, or Close.
  void BeginSend(const FrameHeader& header, ConstBlock data);
  // `offset`: position of this frame's data in the block of `incoming`.
  void BeginReceive(const Incoming& incoming, size_t offset, size_t bytes);
  bool sending() const { return send_left_ > 0; }
  bool receiving() const { return receives_; }
  // Whether all data of the receive under way has arrived.
  bool is_complete() const { return is_accepted_ && read_ == bytes_; }
  size_t bytes() const { return bytes_; }  // of data of the receive under way

  // Write and read as much as the connection takes and has. kClosed: it
  // is lost; closed_by() says why.
  Progress Send();
  Progress Receive();
  // Ends a complete receive: reduces data that had to wait for the end of the
  // send.
  void FinishReceive();

  // The header of the frame under way, once it is complete. Its data counts as
  // received only after the caller has accepted it.
  const FrameHeader* header() const { return header_read_ == sizeof header_ ? &header_ : nullptr; }
  void AcceptHeader() { is_accepted_ = true; }
  bool is_accepted() const { return is_accepted_; }

  const std::string& closed_by() const { return closed_by_; }
  // Ends the connection. Blocks are not touched any more.
  void Close();

 private:
  Progress Lost(int error_number);
  Block NextSpace();
  void ReduceFullStaging();
  void ReduceStaged();

  std::unique_ptr<Connection> connection_;
  std::string closed_by_;

  FrameHeader out_header_;
  ConstBlock out_data_{};
  size_t send_left_ = 0;  // bytes of header and data that are not written

  bool receives_ = false;
  FrameHeader header_;
  size_t header_read_ = 0;
  bool is_accepted_ = false;
  Incoming incoming_{.peer = -1, .data = {nullptr, 0}};
  size_t offset_ = 0;  // of the frame's data in the block
  size_t bytes_ = 0;   // of the frame's data
  size_t read_ = 0;    // bytes of it that have arrived
  size_t reduced_ = 0;
  std::unique_ptr<std::byte[]> staging_;  // received data that will be reduced
  size_t staging_bytes_ = 0;
  size_t piece_bytes_ = 0;  // that are reduced at a time: whole elements
};

}  // namespace rankrun::comm::stream
