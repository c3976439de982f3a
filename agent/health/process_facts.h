#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// A system call in which a thread waits, from a line of /proc/PID/syscall.
struct WaitingCall {
  CallKind kind = CallKind::kNone;
  std::string name{};
  int descriptor = -1;  // its first argument, if that is one; else -1
};

// Returns the call that `line` shows; kNone for a running thread and for other text. Pure.
WaitingCall ParseCall(const std::string& line);

// Returns the number in a line "name: 12 kB" of /proc/PID/status or io; 0 if there is none. Pure.
uint64_t NumberIn(const std::string& text, const std::string& name);

// Returns the time of the processor that all threads of a process have used. Makes two system
// calls, which never block. Thread: any.
Duration CpuTimeOf(pid_t pid);

// Reads the facts of a process from /proc. It reads only files that a process in uninterruptible
// sleep does not block, and follows no path of a user's file system.
// Thread: any, but not the loop's.
ProcessFacts ReadProcessFacts(pid_t pid);

}  // namespace rankrun::agent
