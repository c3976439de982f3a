#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

// Opens /dev/null as each closed descriptor of 0, 1 and 2, because the next
// file that we open would take its number.
inline void OpenStandardDescriptors() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

}  // namespace rankrun
