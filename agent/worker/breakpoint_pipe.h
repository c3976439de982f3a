#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/worker/line_fifo.h"

namespace rankrun::agent {

// A process of a worker has stopped at a breakpoint and waits for a debugger, or for the
// terminal because it debugs itself; or it goes on, or returns the terminal.
struct BreakpointNotice {
  enum class Kind { kStopped, kBorrows, kPassed, kReturned };
  Kind kind;
  int global_rank;
  pid_t process;
  uint32_t hold;  // number of this stop; later ones of the process have greater numbers
  int pipe = -1;  // of kBorrows: descriptor of the process, which reads the terminal's path
  bool operator==(const BreakpointNotice&) const = default;
};

// Parses "stopped 2 4711 1", "borrows 2 4711 1 9" or "passed 2 4711 1", and "returned"
// alike. Returns nothing for any other line. Pure.
std::optional<BreakpointNotice> ParseBreakpointLine(std::string_view line);

// Pipe without a name in the file system through which librankrun reports breakpoints
// (RANKRUN_BREAKPOINT_PIPE). Ignores lines of another form, with one warning.
// Thread: loop.
class BreakpointPipe {
 public:
  // Errors: those of LineFifo.
  static Result<std::unique_ptr<BreakpointPipe>> Create(
      Loop& loop, std::function<void(const BreakpointNotice&)> on_notice);
  BreakpointPipe(const BreakpointPipe&) = delete;
  BreakpointPipe& operator=(const BreakpointPipe&) = delete;

  const std::string& path() const { return pipe_->path(); }

 private:
  explicit BreakpointPipe(std::function<void(const BreakpointNotice&)> on_notice)
      : on_notice_(std::move(on_notice)) {}

  void OnLine(std::string_view line);

  std::function<void(const BreakpointNotice&)> on_notice_;
  bool warned_ = false;
  std::unique_ptr<LineFifo> pipe_;
};

}  // namespace rankrun::agent
