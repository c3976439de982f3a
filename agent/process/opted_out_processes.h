#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace rankrun::agent {

// Descendants that opt out of being killed at the end of a job: programs that
// were executed with RANKRUN_KEEP=1 in their environment. Their own descendants
// are spared with them.

// Time limits for reading the environments. Callers that cannot wait use the
// short one, because a stuck process may block its reader. The long one
// suffices on a busy machine.
constexpr std::chrono::milliseconds kKeptPatience{300};
constexpr std::chrono::milliseconds kLongKeptPatience{5'000};

// A process in neither set is in the middle of exec, or its environment cannot
// be read.
struct OptOutMarks {
  std::set<pid_t> opted_out;
  std::set<pid_t> not_opted_out;
};

// Sorts `pids` by whether they opted out. Blocks while the kernel blocks
// readers of a stuck process's memory. Thread: any.
OptOutMarks OptOutMarksOf(const std::vector<pid_t>& pids);

// Returns the descendants of this process that opted out. A helper process
// reads the environments, so that a stuck process cannot block the caller;
// descendants not found within `patience` are missing. Skips the processes in
// `spared` and their descendants.
std::set<pid_t> FindOptedOut(const std::set<pid_t>& spared, std::chrono::milliseconds patience);

// Returns the members of `opted_out` that are not below another member.
std::set<pid_t> TopmostOf(const std::set<pid_t>& opted_out);

// Returns "left running because of RANKRUN_KEEP: pid 4711 (name)".
std::string DescribeOptedOut(pid_t pid);

}  // namespace rankrun::agent
