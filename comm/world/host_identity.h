#pragma once

#include <string>

namespace rankrun::comm {

// Returns "<boot>/<PID namespace>/<user>". Two processes can share memory
// through the files of /proc if and only if their identities are equal.
std::string HostIdentity();

// Returns whether /proc was unreadable there. Such an identity equals no other.
bool IsUnknownHost(const std::string& identity);

}  // namespace rankrun::comm
