#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// A pipe that this process creates and reads line by line. Any process may write to it. If
// it has a name, it is removed from the file system at the end.
// Thread: loop.  Lifetime: may not end inside its own callback.
class LineFifo {
 public:
  // Longer lines are dropped, with one warning, because a pipe does not write
  // them atomically (PIPE_BUF).
  static constexpr size_t kMaxLine = 4096;

  // Replaces a pipe that exists at `path`, because another process may still
  // read from it.
  // Errors: kInvalid if `path` exists and is no pipe; kSystem.
  static Result<std::unique_ptr<LineFifo>> Create(Loop& loop, const std::string& path,
                                                  std::function<void(std::string_view)> on_line);
  // Creates a pipe that has no name in the file system. Other processes open it at path(),
  // below this process in /proc.
  // Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<LineFifo>> CreateUnnamed(
      Loop& loop, std::function<void(std::string_view)> on_line);
  LineFifo(const LineFifo&) = delete;
  LineFifo& operator=(const LineFifo&) = delete;
  ~LineFifo();

  const std::string& path() const { return path_; }

 private:
  LineFifo(std::string path, Fd fd, std::function<void(std::string_view)> on_line);

  static Result<std::unique_ptr<LineFifo>> Watch(Loop& loop, std::unique_ptr<LineFifo> fifo,
                                                 const std::string& what);
  void Read();
  void TakeLines();

  std::string path_;
  Fd fd_;         // open for reading and writing, so that reads see no end of file
  Fd write_end_;  // of a pipe without a name, which `fd_` only reads
  std::function<void(std::string_view)> on_line_;
  std::string unread_;     // start of an incomplete line
  bool dropping_ = false;  // inside a line that is too long
  bool warned_ = false;    // about a line that is too long
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent
