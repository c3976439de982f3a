#pragma once

#include <sys/resource.h>

namespace rankrun {

// Raises this process's limit of open files as far as possible, because a store
// needs a descriptor for each connection. Returns the previous limit.
inline rlim_t RaiseOpenFiles() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  rlim_t as_it_was = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // on failure, the old limit stays
  return as_it_was;
}

}  // namespace rankrun
