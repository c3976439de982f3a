#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// A system call in which a thread waits, from a line of /proc/PID/syscall.
struct WaitingCall {
  CallKind kind = CallKind::kNone;
  std::string name{};
  int descriptor = -1;          // its first argument, if that is one; else -1
  uint64_t path = 0;            // where the process has the path that it names; 0: it names none
  int directory = AT_FDCWD;     // to which that path is relative
  uint64_t open_flags = 0;      // of a call that opens a file
  bool waits_for_lock = false;  // of the file behind `descriptor`
  uint64_t polled = 0;          // where a poll has its list of descriptors; 0: it is none
  uint64_t polled_count = 0;    // of them
  int epoll = -1;               // the instance of epoll in which it waits
  pid_t joined = 0;             // thread that it joins; 0: none
  bool operator==(const WaitingCall&) const = default;
};

// Returns the call that `line` shows; kNone for a running thread and for other text. A call that
// the kernel continues after an interruption has lost its number: `wait_channel`, the function of
// the kernel in which the thread waits, shows its kind. Pure.
WaitingCall ParseCall(const std::string& line, const std::string& wait_channel = "");

}  // namespace rankrun::agent
