#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

// Entries of the kernel's tables of mounts and of file locks. Pure.
namespace rankrun::agent {

// A line of /proc/PID/mountinfo.
struct Mount {
  int id = 0;
  std::string point{};   // "/mnt/data"
  std::string type{};    // "nfs4"
  std::string source{};  // "nas:/export"
  bool operator==(const Mount&) const = default;
};

// Returns the mount with a number, as fdinfo has it; nothing if `table` lacks it.
std::optional<Mount> MountWithId(const std::string& table, int id);
// Returns the mount of an absolute path. A mount may hide an earlier one.
std::optional<Mount> MountOfPath(const std::string& table, const std::string& path);

// Returns "on the NFS server nas:/export"; empty for a file system of this host.
std::string ServerInWords(const Mount& mount);

// Returns the process that has the lock for which `waiter` waits, by /proc/locks: the process that
// took it, although its children may have it, too. Nothing if the table does not show it.
std::optional<pid_t> LockHolder(const std::string& table, pid_t waiter);

}  // namespace rankrun::agent
