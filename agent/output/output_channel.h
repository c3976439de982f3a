#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// Connection from a worker to its agent: a pipe or a terminal.
struct OutputChannel {
  Fd read_end;    // non-blocking
  Fd worker_end;  // inherited by the worker

  // Opens a pipe with a buffer of `bytes`, if the system allows that size.
  static Result<OutputChannel> OpenPipe(size_t bytes);

  // Opens a terminal that passes bytes unchanged. It gets the size of the
  // terminal `like_fd`, if that is one. Inheriting it does not make it a
  // controlling terminal.
  static Result<OutputChannel> OpenTerminal(int like_fd);
};

// Gives the terminal `to_fd` the size of the terminal `from_fd`. Returns false
// if one of them is not a terminal.
bool CopyTerminalSize(int from_fd, int to_fd);

}  // namespace rankrun::agent
