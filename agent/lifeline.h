#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Watches an inherited pipe or socket whose other end somebody else holds
// open for as long as the job is wanted: a parent's death, however it comes,
// closes it. What is written there is read and forgotten.
// Thread: loop.  Lifetime: may not end inside its callback.
class Lifeline {
 public:
  // `on_end` is called once, when the other end is closed.
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
