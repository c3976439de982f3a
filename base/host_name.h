#pragma once

#include <string>

namespace rankrun {

// Returns the name of this host; empty if the kernel does not give it.
std::string HostName();

}  // namespace rankrun
