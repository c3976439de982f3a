#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

// Processes that wait for input, seen in /proc.
namespace rankrun::agent {

// Which threads of a process, and of its descendants, may ask for input.
enum class Readers {
  kMainThreads,  // that of the process, and of a child for which it waits
  kAll,
};

// Returns the descriptor that a thread reads, or for which alone it selects; nothing if it is in
// another call. `line` is that of /proc/PID/task/TID/syscall. Pure.
std::optional<int> AwaitedInput(const std::string& line);

// Returns whether a process, or a descendant, waits for input from `file`, which is named as
// the links in /proc/PID/fd name it: "/dev/pts/3". False also if the kernel does not show the
// calls of the process. Thread: any, not the loop's.
bool WaitsForInput(pid_t process, const std::string& file, Readers readers);

// Returns whether the kernel shows the calls of a process: a sandbox may lack
// /proc/PID/syscall, and this process the right to trace it.
bool ShowsCalls(pid_t process);

// Returns whether a process is in the foreground of its terminal, or has none.
bool IsInForeground(pid_t process);

// Returns the file behind a descriptor, as the link in /proc/PID/fd names it; empty: unknown.
std::string FileOfDescriptor(pid_t process, int descriptor);

}  // namespace rankrun::agent
