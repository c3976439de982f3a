#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Watches an inherited pipe or socket whose other end the parent process holds
// open for as long as it wants the job. Any death of the parent closes that
// end. Data that arrives is discarded.
// Thread: loop.  Lifetime: may not end inside its callback.
class Lifeline {
 public:
  // Calls `on_end` once, when the other end is closed.
  // Errors: kInvalid, "--lifeline <fd>: <reason>".
  static Result<std::unique_ptr<Lifeline>> Watch(Loop& loop, int fd, std::function<void()> on_end);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  Lifeline(int fd, std::function<void()> on_end);
  void OnReadable();

  const int fd_;
  std::function<void()> on_end_;
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent
