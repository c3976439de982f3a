#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/uv_timer.h"

namespace rankrun {

class Loop;

// Writes to a descriptor that may block for ever (a stopped terminal, a full
// pipe, a hung disk) without blocking the loop: one write at a time is with
// libuv's pool, the rest waits in memory. The caller keeps that small by
// looking at queued_bytes() and waiting for `on_progress`.
// Does not own the descriptor. Thread: loop.
// Lifetime: may end at any time, also inside on_progress; what is queued then
// is discarded, what is being written may still arrive.
class Output {
 public:
  // `on_progress`, which may be empty, is called after each write that ended.
  Output(Loop& loop, int fd, std::function<void()> on_progress);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Queues `bytes`. When a write fails, what is queued is dropped and counted;
  // after that of a closed terminal or pipe, all that follows too.
  void Write(std::string_view bytes);

  size_t queued_bytes() const;
  // Bytes dropped before writing worked again, once; 0 while it does not.
  size_t TakeLoss();
  // Why the last write failed; 0 if it worked.
  int failure() const { return failure_; }

 private:
  struct Request;

  void StartWrite();
  void OnWritten(ssize_t result);
  void OnFailure(int errno_value);

  Loop& loop_;
  int fd_;
  std::function<void()> on_progress_;
  std::string waiting_;           // not yet given to the pool
  Request* in_flight_ = nullptr;  // owned by libuv until its callback
  size_t dropped_bytes_ = 0;
  size_t told_bytes_ = 0;  // of those, taken by TakeLoss
  int failure_ = 0;        // of the last write
  bool broken_ = false;
  bool waits_for_retry_ = false;  // nothing is with the pool then
  Timer retry_;                   // of a non-blocking descriptor that is full
};

}  // namespace rankrun
