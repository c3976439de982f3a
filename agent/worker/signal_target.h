#pragma once

#include <sys/types.h>

#include <string_view>

namespace rankrun::agent {

// Facts about a process that decide whether it handles a signal, from /proc.
struct SignalFacts {
  std::string_view status;        // text of its `status`
  std::string_view program;       // path of the program that it runs
  std::string_view wait_channel;  // function of the kernel in which it sleeps
};

// Returns whether a process catches, blocks or ignores a signal, so that it does not die of it.
// Pure.
bool Handles(const SignalFacts& facts, int signal_number);

// Returns whether a signal for a worker is for its first process alone, which handles it, and
// not for its whole process group. A terminal gives SIGINT and SIGQUIT to all, and wrappers rely
// on it. A shell that waits for its command runs a trap only after that has ended. Pure.
bool IsForProcessAlone(const SignalFacts& facts, int signal_number);

// The same for the process `pid`. They read /proc, but nothing that another process can block, and
// no more than they need.
bool HandlesSignal(pid_t pid, int signal_number);
bool TakesSignalAlone(pid_t pid, std::string_view status, int signal_number);

}  // namespace rankrun::agent
