#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "comm/rpc/message.h"
#include "comm/stream/connection.h"

namespace rankrun::comm::rpc {

// Receiver of the frames of a link.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // `head` is valid during the call, blobs as long as they exist.
  virtual void OnFrame(const FrameHeader& header, std::string_view head,
                       std::vector<Blob> blobs) = 0;
};

// Messages over one connection.
// Thread: any for Send, one at a time for the others.
class Link {
 public:
  explicit Link(std::unique_ptr<stream::Connection> connection)
      : connection_(std::move(connection)) {}

  int fd() const { return connection_->fd(); }
  // Sends what the connection takes at once, and queues the rest. Returns false if the
  // link is lost. No owner of a blob is released under a lock.
  bool Send(FrameKind kind, uint64_t id, Message message) EXCLUDES(mutex_);
  // Whether Write has something to do, once the connection is writable.
  bool has_queued() const { return has_queued_.load(); }
  void Write() EXCLUDES(mutex_);

  // Reads the bytes that have arrived, up to a limit that is fair to other links. Returns whether
  // anything has.
  bool Read(FrameSink& sink);

  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  // Why the link is lost; empty: it is not.
  std::string lost_by() const EXCLUDES(mutex_);
  // Ends the link for both sides, with this reason unless it is lost already.
  void Close(std::string_view why) EXCLUDES(mutex_);

 private:
  // Message that is not sent yet, as parts in their order.
  struct Outgoing {
    FrameHeader header;
    std::vector<uint64_t> sizes;  // of the blobs
    Message message;
    size_t sent = 0;
    size_t first_blob = 0;  // not sent whole yet
    size_t before = 0;      // bytes before that blob, with the zeros
  };
  using Queue = std::deque<Outgoing>;
  using Over = std::vector<Outgoing>;
  static constexpr size_t kBufferBytes = size_t{64} << 10;

  // These append finished messages to `over`, which is destroyed without a lock.
  void WriteQueued(Over& over) REQUIRES(mutex_);
  ssize_t WriteSome(Outgoing& first) REQUIRES(mutex_);
  void Lose(std::string_view why, Over& over) REQUIRES(mutex_);
  bool Parse(FrameSink& sink);
  bool ParseBody(FrameSink& sink);

  const std::unique_ptr<stream::Connection> connection_;
  mutable Mutex mutex_;
  Queue queue_ GUARDED_BY(mutex_);
  std::string lost_by_ GUARDED_BY(mutex_);
  std::atomic<bool> has_queued_ = false;
  std::atomic<bool> is_lost_ = false;

  // For Read:
  std::array<std::byte, kBufferBytes> buffer_;  // read, not parsed
  size_t buffer_begin_ = 0;
  size_t buffer_end_ = 0;
  FrameHeader header_{};  // of the frame under way
  bool in_frame_ = false;
  std::shared_ptr<std::byte[]> body_;  // of a frame that the buffer does not hold
  size_t body_read_ = 0;
};

}  // namespace rankrun::comm::rpc
