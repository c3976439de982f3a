#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace rankrun::agent {

// Makes this process the one that adopts its orphaned descendants.
void BecomeSubreaper();

// Processes whose parent is this process, whichever thread started or adopted
// them; zombies included.
std::vector<pid_t> Children();

// All processes below this one, parents before their children, but for those
// in `spared` and what is below them.
std::vector<pid_t> Descendants(const std::set<pid_t>& spared = {});

// The child of this process that is above `pid` or is it; 0 if there is none.
pid_t ChildAbove(pid_t pid);

// The parent of any process; 0 if there is no such process.
pid_t ParentOf(pid_t pid);

// The letter of its state ('D': in the kernel, and not to be interrupted); 0 if
// there is no such process.
char StateOf(pid_t pid);

// When a process was started, in ticks since the machine was; 0 if there is no
// such process. With its number it names a process for ever.
uint64_t StartTimeOf(pid_t pid);

// Whether a process has left its old program and not begun the new one; the
// kernel says so, too, of a process that we may not look into.
bool IsAmidExec(pid_t pid);

// How long ago a start time was; nothing if it is 0, or not of this clock.
std::optional<Duration> AgeOf(uint64_t start_time);

// Whether this process has any child: asks the kernel, not /proc, so that
// "none" is a proof (waitid says ECHILD).
bool HasChildren();

// The content of /proc/<pid>/<name>; empty if there is none.
std::string ReadOfProcess(pid_t pid, const std::string& name);

// "pid 4711 (python3), state D in nfs_wait_bit_killable": for a process that
// does not go away.
std::string DescribeProcess(pid_t pid);

// Kills every descendant and reaps every child until there is none, whatever
// the descendants do meanwhile. Those in `spared`, and what is below them while
// they live, are left alone. Blocks; names on standard error what has not died within a
// second, and goes on waiting for it. Returns how many were killed.
int KillDescendants(const std::set<pid_t>& spared);

}  // namespace rankrun::agent
