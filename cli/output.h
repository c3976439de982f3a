#pragma once

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

// Buffered standard output. End writes the rest of the buffer.
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
};

// Writes all of `text`. Returns the exit code.
int Print(std::string_view text);

}  // namespace rankrun::cli
