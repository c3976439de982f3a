#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cpus.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun {

// The descriptor under which a spawned process finds its status page.
constexpr int kStatusPageFd = 3;

// What to start. All of it is prepared before the fork: the child only makes
// system calls.
struct SpawnSpec {
  std::string file;                           // path for execve: no look-up
  std::vector<std::string> arguments;         // argv, argv[0] included
  std::vector<std::string> environment = {};  // "NAME=value", the whole of it
  int stdin_fd = 0;                           // becomes 0; likewise the others
  int stdout_fd = 1;
  int stderr_fd = 2;
  int status_page_fd = Fd::kNone;         // becomes kStatusPageFd
  std::optional<rlim_t> open_files = {};  // soft limit of descriptors
  std::optional<int> oom_score_adj = {};  // raised is always allowed; not set if it cannot be
  Cpus cpus = {};                         // where it may run; empty: where we may
  std::function<void()> before = {};      // in this process, on the thread that starts it
  // What ChangedSignals() has said since they last changed; empty: unknown.
  std::optional<uint64_t> changed_signals = {};
};

// The signals that this process handles otherwise than by default: bit n for
// signal n + 1.
uint64_t ChangedSignals();

class SpawnSlots;

struct SpawnedProcess {
  pid_t pid;
  Fd pidfd;
};

// Starts a process in a session of its own, with all signals unblocked and at
// their default, with no descriptors but those of `spec`, and with
// PDEATHSIG = SIGKILL: it dies when the *thread* that called this ends.
// Blocks until the exec has happened or failed.
// Errors: kNotFound or kSystem, "start <file>: <cause>", when fork, binding or
// exec failed; nothing is left behind then. The caller reaps the process.
Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec, const SpawnSlots& slots);
// Through slots that are opened for it.
Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec);

// How a process ended.
struct ProcessExit {
  bool signaled = false;  // else it exited
  int value = 0;          // signal number or exit code

  bool succeeded() const { return !signaled && value == 0; }
  // As a shell shows it: the code, or 128 + signal.
  int ShellCode() const { return signaled ? 128 + value : value; }
  bool operator==(const ProcessExit&) const = default;
};

// Reaps a child if it has ended. Nothing if it has not.
std::optional<ProcessExit> ReapByPidfd(int pidfd);
std::optional<ProcessExit> ReapByPid(pid_t pid);

}  // namespace rankrun
