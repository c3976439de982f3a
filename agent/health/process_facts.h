#pragma once

#include <sys/types.h>

#include <string>

#include "agent/health/awaited_file.h"
#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// Returns the number in a line "name: 12 kB" of /proc/PID/status or io; 0 if there is none. Pure.
uint64_t NumberIn(const std::string& text, const std::string& name);

// Returns the time of the processor that all threads of a process have used. Makes two system
// calls, which never block. Thread: any.
Duration CpuTimeOf(pid_t pid);

// Reads the facts of a process from /proc. It reads only files that a process in uninterruptible
// sleep does not block, and follows no path of a user's file system. `files` finds the file for
// which it waits. If it is a shell that waits for its command, the detail is about that command.
// Thread: any, but not the loop's.
ProcessFacts ReadProcessFacts(pid_t pid, AwaitedFiles& files);

}  // namespace rankrun::agent
