#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace rankrun::agent {

// Makes this process adopt its orphaned descendants.
void BecomeSubreaper();

// Returns the processes whose parent is this process, including zombies,
// whichever thread started or adopted them.
std::vector<pid_t> Children();

// Returns all processes below this one, parents before their children. Omits
// the processes in `spared` and their descendants.
std::vector<pid_t> Descendants(const std::set<pid_t>& spared = {});

// Returns the child of this process that is `pid` or an ancestor of it; 0 if
// there is none.
pid_t ChildAbove(pid_t pid);

// Returns the parent of any process; 0 if there is no such process.
pid_t ParentOf(pid_t pid);

// Returns the state letter of a process ('D': uninterruptible, in the kernel);
// 0 if there is no such process.
char StateOf(pid_t pid);

// Returns whether a process has a tracer, by the text of its `status`. One that attaches to it
// waits for a stop, which a SIGCONT cancels: a debugger, or the search for leaks at the end of a
// program with a sanitizer. Pure.
bool IsTraced(std::string_view status);

// Returns whether a process has an environment, or is in the middle of exec: it has
// left its old program and not yet begun the new one. If its environment was empty
// a moment ago, it may then have been in exec. Also true for a process that this one
// may not inspect, because the kernel then shows the same as for exec.
bool MayHaveEnvironment(pid_t pid);

// Returns the time since `start_time`; nothing if it is 0 or in the future.
std::optional<Duration> AgeOf(uint64_t start_time);

// Returns whether this process has any child. The answer "none" is certain
// because it comes from the kernel (ECHILD of waitid), not from /proc.
bool HasChildren();

// Returns the content of /proc/<pid>/<name>; empty if it cannot be read.
std::string ReadOfProcess(pid_t pid, const std::string& name);

// Returns "state D in nfs_wait_bit_killable" of a process's first thread; empty if
// there is no such process.
std::string DescribeState(pid_t pid);

// Returns "pid 4711 (python3), state D in nfs_wait_bit_killable", for messages
// about a process that does not end.
std::string DescribeProcess(pid_t pid);

// Sends a signal to a process below this one. Does nothing if `pid` belongs to
// another process by now, because the one that was listed has ended. Returns
// false if we may not signal the process.
bool SignalDescendant(pid_t pid, int signal_number);

// Kills every descendant and reaps every child until none is left, whatever the
// descendants do meanwhile. Spares the processes in `spared` and, while those
// live, their descendants. Blocks. Names processes that survive for a second on
// standard error and keeps waiting. Returns the number of killed processes.
int KillDescendants(const std::set<pid_t>& spared);

}  // namespace rankrun::agent
