#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <rankrun/process_group.h>

#include "base/fd.h"

namespace rankrun::rpc {

// Bytes of a socket as messages of a process group of two ranks, in both directions. Each
// message is a block of fixed size, which says how many bytes follow in another message,
// or has them itself.
// Thread: one at a time. Lifetime: outlives `group`, whose messages use its memory.
class GroupPipe {
 public:
  // `wake` lets Advance be called soon, from any thread, also after the end of this object.
  GroupPipe(ProcessGroup& group, Fd socket, std::function<void()> wake);

  int fd() const { return socket_.get(); }
  // Events of the socket for which its thread waits.
  bool wants_read() const { return !is_over_ && !is_sending_ && !has_sent_end_; }
  bool wants_write() const { return !is_over_ && delivered_ < to_deliver_.size(); }

  // Moves what can be moved without waiting.
  void Advance();
  // Whether both directions have ended, or the other rank is lost.
  bool is_over() const { return is_over_; }

 private:
  struct Block {
    static constexpr size_t kInside = 1020;
    uint32_t bytes;  // kEnd: no more follow
    std::array<std::byte, kInside> inside;
  };
  static constexpr uint32_t kEnd = UINT32_MAX;
  static constexpr size_t kMaxBytes = size_t{256} << 10;  // of one message

  bool AdvanceOut();  // returns whether something has moved
  bool AdvanceIn();
  void SendBytes(size_t bytes);
  void SendBlock();
  void Take(const Work& work) const;
  bool Deliver();
  bool OnBlock();
  void PostBlock();
  void Lose();

  ProcessGroup& group_;
  const GroupRank other_;
  const Fd socket_;
  const std::function<void()> wake_;
  bool is_over_ = false;

  // From the socket:
  Block out_{};
  std::vector<std::byte> out_bytes_;
  std::vector<Work> sends_;
  bool is_sending_ = false;
  bool has_sent_end_ = false;

  // To the socket:
  Block in_{};
  std::vector<std::byte> in_bytes_;
  Work receive_;
  bool is_in_bytes_ = false;  // the receive is that of in_bytes_
  bool has_received_end_ = false;
  std::span<const std::byte> to_deliver_;
  size_t delivered_ = 0;
};

}  // namespace rankrun::rpc
