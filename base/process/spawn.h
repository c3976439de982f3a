#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process/cpus.h"
#include "base/process/process_handle.h"
#include "base/result.h"

namespace rankrun {

// Descriptor of the status page in a spawned process.
constexpr int kStatusPageFd = 3;

// A process to start. SpawnProcess prepares everything before the fork, because
// the child only makes system calls.
struct SpawnSpec {
  std::string file;                           // path for execve; not searched in PATH
  std::vector<std::string> arguments;         // argv, argv[0] included
  std::vector<std::string> environment = {};  // "NAME=value", complete
  int stdin_fd = 0;                           // becomes 0; likewise for the others
  int stdout_fd = 1;
  int stderr_fd = 2;
  int status_page_fd = Fd::kNone;         // becomes kStatusPageFd
  std::optional<rlim_t> open_files = {};  // soft limit of open files
  std::optional<rlim_t> core_bytes = {};  // soft limit of a core file
  std::optional<int> oom_score_adj = {};  // raising it always works; not set if not permitted
  Cpus cpus = {};                         // allowed CPUs; empty: those of this process
  std::function<void()> before = {};      // called in this process, on the starting thread
  // Result of ChangedSignals() since the last change; empty: unknown.
  std::optional<uint64_t> changed_signals = {};
};

// Returns the signals whose disposition in this process is not the default: bit
// n for signal n + 1.
uint64_t ChangedSignals();

class SpawnSlots;

struct SpawnedProcess {
  pid_t pid;
  ProcessHandle handle;
};

// Starts a process in a session of its own. All signals are unblocked and have
// their default disposition; only the descriptors of `spec` are open. PDEATHSIG
// is SIGKILL: the process dies when the *thread* that called this ends. Blocks
// until the exec has succeeded or failed.
// Errors: kNotFound or kSystem, "start <file>: <cause>", if fork, binding or
// exec failed; nothing is left behind then. The caller reaps the process.
Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec, const SpawnSlots& slots);
// The same with slots of its own.
Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec);

}  // namespace rankrun
