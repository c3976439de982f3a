#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/uv/uv_timer.h"

namespace rankrun {

class Loop;

// Writes to a descriptor that may block for ever (a stopped terminal, a full
// pipe, a hung disk) without blocking the loop. libuv's pool does one write at
// a time; the rest waits in memory. The caller limits it by checking
// queued_bytes() and waiting for `on_progress`.
// Does not own the descriptor. Thread: loop.
// Lifetime: may end at any time, also inside on_progress. Queued data is then
// discarded; a write in progress may still complete.
class Output {
 public:
  // Calls `on_progress`, which may be empty, after each completed write.
  Output(Loop& loop, int fd, std::function<void()> on_progress);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Queues `bytes`. When a write fails, queued data is dropped and counted.
  // Once a terminal or pipe is closed, all later data is dropped, too.
  void Write(std::string_view bytes);

  size_t queued_bytes() const;
  // Returns, once, the number of bytes dropped before writing worked again; 0
  // while it does not work.
  size_t TakeLoss();
  // errno of the last write; 0 if it succeeded.
  int failure() const { return failure_; }

 private:
  struct Request;

  void StartWrite();
  void OnWritten(ssize_t result);
  void OnFailure(int errno_value);

  Loop& loop_;
  int fd_;
  std::function<void()> on_progress_;
  std::string waiting_;           // not yet passed to the pool
  Request* in_flight_ = nullptr;  // owned by libuv until its callback
  size_t dropped_bytes_ = 0;
  size_t reported_bytes_ = 0;  // of dropped_bytes_, already returned by TakeLoss
  int failure_ = 0;            // of the last write
  bool broken_ = false;
  bool waits_for_retry_ = false;  // no write is in the pool then
  Timer retry_;                   // for a full non-blocking descriptor
};

}  // namespace rankrun
