#pragma once

#include <string>

namespace rankrun::comm {

// The same for two processes just if they can share memory through /proc: of
// one boot of one machine, one PID namespace and one user.
std::string HostIdentity();

}  // namespace rankrun::comm
