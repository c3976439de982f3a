#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// What a worker writes to, and where we read it: a pipe, or a terminal.
struct OutputChannel {
  Fd read_end;    // non-blocking
  Fd worker_end;  // for the worker

  // A pipe that holds `bytes`, if the system allows so many.
  static Result<OutputChannel> OpenPipe(size_t bytes);

  // A terminal that changes nothing of what is written to it, as large as that
  // of `like_fd` if that is one. It does not become anybody's controlling
  // terminal by being inherited.
  static Result<OutputChannel> OpenTerminal(int like_fd);
};

// Makes the terminal of `to_fd` as large as that of `from_fd`; false if one of
// the two is none.
bool CopyTerminalSize(int from_fd, int to_fd);

}  // namespace rankrun::agent
