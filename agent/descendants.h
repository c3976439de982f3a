#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace rankrun::agent {

// Makes this process the one that adopts its orphaned descendants.
void BecomeSubreaper();

// Processes whose parent is this process, whichever thread started or adopted
// them; zombies included.
std::vector<pid_t> Children();

// All processes below this one, parents before their children.
std::vector<pid_t> Descendants();

// Whether this process has any child: asks the kernel, not /proc, so that
// "none" is a proof (waitid says ECHILD).
bool HasChildren();

// "pid 4711 (python3), state D in nfs_wait_bit_killable": for a process that
// does not go away.
std::string DescribeProcess(pid_t pid);

// Kills every descendant and reaps every child until there is none, whatever
// the descendants do meanwhile. Those in `spared`, and what is below them while
// they live, are left alone. Blocks; names on standard error what has not died within a
// second, and goes on waiting for it. Returns how many were killed.
int KillDescendants(const std::set<pid_t>& spared);

}  // namespace rankrun::agent
