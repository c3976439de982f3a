#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::cli {

// Exit codes of rankctl.
constexpr int kExitDone = 0;
constexpr int kExitNo = 1;     // the answer is no, or did not come in time
constexpr int kExitUsage = 2;  // the command line or a variable is wrong
constexpr int kExitStore = 3;  // the store cannot be reached or broke the protocol

// Writes one line, "rankctl: <message>", to standard error and returns
// `exit_code`. Escapes control characters, so that it is one line.
int Fail(std::string_view message, int exit_code);

// Copies bytes to a descriptor. A terminal gets text that does not control it, because programs
// and other users may have written it.
class SafeStream {
 public:
  explicit SafeStream(int fd) : fd_(fd), is_terminal_(isatty(fd) != 0) {}
  SafeStream(const SafeStream&) = delete;
  SafeStream& operator=(const SafeStream&) = delete;
  ~SafeStream();  // writes the rest of an incomplete character

  Result<void> Write(std::string_view bytes);

 private:
  const int fd_;
  const bool is_terminal_;
  std::string rest_;
};

// Buffered standard output, as a SafeStream. End writes the rest of the buffer.
class Printer {
 public:
  // Both return whether all writes have succeeded so far. After a failure, the
  // rest is dropped.
  bool Write(std::string_view bytes);
  bool Flush();

  // Flushes. Returns `exit_code` if everything was written; otherwise prints the
  // reason and returns kExitNo.
  int End(int exit_code);

 private:
  std::string buffer_;
  Result<void> state_;
  SafeStream out_{STDOUT_FILENO};
};

// Writes all of `text` as a SafeStream does. Returns the exit code.
int Print(std::string_view text);

// Clears the terminal and writes `text` from its first line on. Returns the exit code.
int Redraw(std::string_view text);

}  // namespace rankrun::cli
