#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/uv/uv_output.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Our standard output and standard error, shared by all workers and by
// rankrun's own messages. Text of different writers never shares a line: the
// console ends an open line before it shows another writer's text. It drops
// text that cannot be written and warns once.
// Thread: loop.
class Console {
 public:
  enum Channel { kStdout, kStderr };
  static constexpr int kOurselves = -1;
  static constexpr size_t kMaxQueuedBytes = 1024 * 1024;

  struct Text {
    int writer;  // may continue its own open line; kOurselves: rankrun
    std::string_view bytes;
    std::string_view prefix = {};
    bool after_return = false;  // the writer's previous text ended in a carriage return
  };

  // The two descriptors must outlive the console. Calls `on_progress` after
  // each completed write; the console must not be destroyed inside it.
  Console(Loop& loop, int stdout_fd, int stderr_fd, std::function<void()> on_progress);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void Write(Channel channel, const Text& text);
  // Writes whole lines to standard error.
  void Say(std::string_view lines) { Write(kStderr, {.writer = kOurselves, .bytes = lines}); }

  // A line was typed, and its terminal has echoed the newline.
  void NoteTypedLine();

  // Asks the other workers not to write until the next call; empty: none.
  void HoldAllBut(std::optional<int> local_rank) { shown_rank_ = local_rank; }
  bool holds(int local_rank) const { return shown_rank_ && *shown_rank_ != local_rank; }
  bool full(Channel channel) const;
  size_t queued_bytes() const;

 private:
  // A terminal, pipe or file, and the last text that it got.
  struct Side {
    std::unique_ptr<Output> output;
    bool is_terminal = false;
    int writer = kOurselves;
    char last = '\n';
    bool reported = false;  // a failure has been reported
  };

  // Both channels use the same side if they have the same target, because two
  // outputs would write in any order.
  Side& SideOf(Channel channel) { return sides_[share_target_ ? kStdout : channel]; }
  const Side& SideOf(Channel channel) const { return sides_[share_target_ ? kStdout : channel]; }
  void OnProgress(Channel channel);
  std::string NewFailure(Channel channel);

  std::function<void()> on_progress_;
  const bool share_target_;
  std::array<Side, 2> sides_;
  std::optional<int> shown_rank_;  // local rank, while the others must not write
};

}  // namespace rankrun::agent
