#pragma once

#include <string>

namespace rankrun::comm {

// Returns "<boot>/<PID namespace>/<user>", and "/<id>" if RANKRUN_HOST_ID is set.
// Two processes can share memory through the files of /proc if their identities
// are equal. The variable can only separate processes, never join them.
std::string HostIdentity();

// Returns whether /proc was unreadable there. Such an identity equals no other.
bool IsUnknownHost(const std::string& identity);

// Returns whether the kernel or a sandbox refuses memory to share there. Such an identity equals
// no other.
bool LacksSharedMemory(const std::string& identity);

// Returns whether the kernel hides the files of that process from others of its user. Such an
// identity equals no other.
bool HidesFiles(const std::string& identity);

}  // namespace rankrun::comm
