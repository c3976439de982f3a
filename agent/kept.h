#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace rankrun::agent {

// Descendants that opt out of a job's end: those that were executed with
// RANKRUN_KEEP=1 in their environment. What is below them is theirs.

// How long a look at one may take: who cannot wait has no more for it than that
// of a stuck process, who has time gets the longer one of a busy machine.
constexpr std::chrono::milliseconds kKeptPatience{300};
constexpr std::chrono::milliseconds kLongKeptPatience{5'000};

// What is in neither has no environment, or none that we may read; so has what
// is being executed just now.
struct KeepMarks {
  std::set<pid_t> kept;
  std::set<pid_t> not_kept;
};

// Which of `pids` do. Blocks for as long as the kernel holds up whoever reads
// the memory of a stuck process. Thread: any.
KeepMarks KeepMarksOf(const std::vector<pid_t>& pids);

// The descendants of this process that do, as a helper process finds them:
// what it has not found within `patience` does not count. For a process that
// must not hang. `spared` and what is below them are not looked at.
std::set<pid_t> FindKept(const std::set<pid_t>& spared, std::chrono::milliseconds patience);

// Those of `kept` that are not below another one.
std::set<pid_t> TopmostOf(const std::set<pid_t>& kept);

// "left running because of RANKRUN_KEEP: pid 4711 (name)".
std::string DescribeKept(pid_t pid);

}  // namespace rankrun::agent
