#pragma once

#include <string>

namespace rankrun {

// Returns the name of this host; empty if the kernel does not give it.
std::string HostName();

// Returns the id of the kernel's start, which differs between hosts of one name, and between two
// starts of one host; empty if the kernel does not give it.
std::string BootId();

}  // namespace rankrun
