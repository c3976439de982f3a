#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun {

// How a process ended.
struct ProcessExit {
  bool signaled = false;  // false: it exited
  int value = 0;          // signal number or exit code

  bool succeeded() const { return !signaled && value == 0; }
  // Returns the exit code that a shell shows: the code, or 128 + signal.
  int ShellCode() const { return signaled ? 128 + value : value; }
  bool operator==(const ProcessExit&) const = default;
};

// Returns when a process started, in clock ticks since boot; 0 if /proc does not show it. A pid is
// unique only together with its start time.
uint64_t StartTimeOfProcess(pid_t pid);

// Reaps a child if it has ended; otherwise returns nothing.
std::optional<ProcessExit> ReapByPid(pid_t pid);

// One process, of which another one that takes over its pid is never mistaken. It is a pidfd.
// Where the kernel has no pidfd_open (before Linux 5.3) or a sandbox forbids it, it is a timer,
// at whose ticks the caller looks, and the start time of the process.
// Thread: one at a time; HasEnded, AwaitEnd and Send: any.
class ProcessHandle {
 public:
  // Errors: kNotFound if there is no such process; kExhausted, kSystem.
  static Result<ProcessHandle> Open(pid_t pid);

  ProcessHandle() = default;  // of no process
  explicit operator bool() const { return static_cast<bool>(fd_); }

  // Readable for ever once the process has ended. A timer is readable at its next tick, and at
  // ticks before the end, too: ask HasEnded.
  int fd() const { return fd_.get(); }

  // Returns whether the process has ended, even if its parent has not reaped it yet.
  bool HasEnded() const;
  // Waits for the end. Returns false at the deadline.
  bool AwaitEnd(TimePoint deadline) const;
  // Returns whether the signal was sent; otherwise errno has the cause, ESRCH after the end.
  bool Send(int signal_number) const;
  // Reaps the process, a child, if it has ended; otherwise returns nothing.
  std::optional<ProcessExit> Reap() const;

 private:
  ProcessHandle(pid_t pid, Fd fd, bool is_timer)
      : pid_(pid),
        start_time_(is_timer ? StartTimeOfProcess(pid) : 0),
        is_timer_(is_timer),
        fd_(std::move(fd)) {}
  bool HasEndedByProc() const;

  pid_t pid_ = 0;
  uint64_t start_time_ = 0;  // with a timer; 0: unknown
  bool is_timer_ = false;
  Fd fd_;
};

}  // namespace rankrun
