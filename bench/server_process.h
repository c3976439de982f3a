#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"

namespace rankrun::bench {

// What the server's process, all threads together, has used so far.
// Errors: kSystem, when there is no such process.
Result<int64_t> CpuNanoseconds(pid_t pid);
Result<int64_t> ResidentKiB(pid_t pid);

}  // namespace rankrun::bench
