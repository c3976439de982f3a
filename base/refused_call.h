#pragma once

#include <cerrno>

namespace rankrun {

// Returns whether a system call failed with this errno because the kernel does not have it or a
// sandbox forbids it. Only for calls that need no permission.
inline bool IsRefusedCall(int errno_value) { return errno_value == ENOSYS || errno_value == EPERM; }

}  // namespace rankrun
