#pragma once

#include <string>

namespace rankrun::comm {

// The same for two processes just if they can share memory through /proc: of
// one boot of one machine, one PID namespace and one user.
// "<boot>/<namespace>/<user>".
std::string HostIdentity();

// Whether that could not be found out: such an identity is like no other.
bool IsUnknownHost(const std::string& identity);

}  // namespace rankrun::comm
