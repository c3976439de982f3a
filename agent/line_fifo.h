#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// A named pipe of ours from which lines are read, whoever writes them. Removed
// from the file system at the end.
// Thread: loop.  Lifetime: may not end inside its own callback.
class LineFifo {
 public:
  // Longer lines are not atomic (PIPE_BUF): they are dropped, with one warning.
  static constexpr size_t kLongestLine = 4096;

  // A pipe that is at `path` already is replaced, since whoever made it may
  // still read it.
  // Errors: kInvalid if something else is there; kSystem.
  static Result<std::unique_ptr<LineFifo>> Create(Loop& loop, const std::string& path,
                                                  std::function<void(std::string_view)> on_line);
  LineFifo(const LineFifo&) = delete;
  LineFifo& operator=(const LineFifo&) = delete;
  ~LineFifo();

  const std::string& path() const { return path_; }

 private:
  LineFifo(std::string path, Fd fd, std::function<void(std::string_view)> on_line);

  void Read();
  void TakeLines();

  std::string path_;
  Fd fd_;  // for reading and writing, so that there is never an end of file
  std::function<void(std::string_view)> on_line_;
  std::string unread_;     // the beginning of a line
  bool dropping_ = false;  // the line that is too long goes on
  bool warned_ = false;    // of such a line
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent
