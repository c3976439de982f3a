#pragma once

#include "base/result.h"

namespace rankrun {

// Checks that this process can start threads. The C library does so by the system call clone3,
// and by the older one only if the kernel answers ENOSYS: some sandboxes answer EPERM.
// Error: kSystem, for the user.
Result<void> CheckThreads();

}  // namespace rankrun
