#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

// Processes that wait for input, seen in /proc.
namespace rankrun::agent {

// A system call in which a thread may wait for input, from a line of /proc/PID/syscall.
struct InputCall {
  enum class Kind : uint8_t {
    kRead,   // of `descriptor`
    kPoll,   // of one descriptor, whose number is in the process's memory at `address`
    kChild,  // no input, but a child that may wait for it
  };
  Kind kind = Kind::kRead;
  int descriptor = -1;
  uint64_t address = 0;
};

// Returns nothing for any other call. Pure.
std::optional<InputCall> ParseInputCall(const std::string& line);

// Returns whether the main thread of a process, or of a child for which it waits, waits for input
// from `file`. `file` is as the links in /proc/PID/fd name it: "pipe:[7]", "/dev/pts/3". Returns
// nothing if the kernel does not show the calls of the process: a sandbox may lack
// /proc/PID/syscall, this process the right to trace it, or it is in the middle of exec.
// Thread: any, not the loop's.
std::optional<bool> WaitsForInput(pid_t process, const std::string& file);

// Returns whether a process is in the foreground of its terminal, or has none.
bool IsInForeground(pid_t process);

// Returns the file behind a descriptor, as the link in /proc/PID/fd names it; empty: unknown.
std::string FileOfDescriptor(pid_t process, int descriptor);

}  // namespace rankrun::agent
