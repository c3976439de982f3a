#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/uv_output.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Our standard output and standard error, shared by all workers and by what
// rankrun itself says. Lines of different writers never share a line of the
// screen: one that was left without an end is ended before another writer's.
// What cannot be written is dropped, and said once.
// Thread: loop.
class Console {
 public:
  enum Channel { kStdout, kStderr };
  static constexpr int kOurselves = -1;
  static constexpr size_t kMostQueuedBytes = 1024 * 1024;

  struct Text {
    int writer;  // whoever goes on with its own line; kOurselves is one
    std::string_view bytes;
    std::string_view prefix = {};
    bool after_return = false;  // the writer's text before ended in a carriage return
  };

  // The two descriptors stay open longer. `on_progress` comes after each write
  // that ended; the console may not end in it.
  Console(Loop& loop, int stdout_fd, int stderr_fd, std::function<void()> on_progress);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void Write(Channel channel, const Text& text);
  // To standard error, whole lines.
  void Say(std::string_view lines) { Write(kStderr, {.writer = kOurselves, .bytes = lines}); }

  bool full(Channel channel) const;
  size_t queued_bytes() const;

 private:
  // A screen, pipe or file, and what it shows last.
  struct Side {
    std::unique_ptr<Output> output;
    int writer = kOurselves;
    char last = '\n';
    bool told = false;  // a failure has been said
  };

  // Both channels have one if they lead to the same: two outputs would write
  // in any order.
  Side& SideOf(Channel channel) { return sides_[one_side_ ? kStdout : channel]; }
  const Side& SideOf(Channel channel) const { return sides_[one_side_ ? kStdout : channel]; }
  void OnProgress(Channel channel);
  std::string NewFailure(Channel channel);

  std::function<void()> on_progress_;
  const bool one_side_;
  std::array<Side, 2> sides_;
};

}  // namespace rankrun::agent
