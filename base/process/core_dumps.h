#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace rankrun {

// Lets no later crash of this process write its memory to a core file. The limit
// is 1 byte, because the kernel runs the program of a piped core_pattern despite
// 0, but not with 1. Returns the previous soft limit in bytes.
inline rlim_t ForbidCoreDumps() {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  rlim_t as_it_was = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(1, limit.rlim_max);
  setrlimit(RLIMIT_CORE, &limit);
  return as_it_was;
}

}  // namespace rankrun
