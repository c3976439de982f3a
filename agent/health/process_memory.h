#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace rankrun::agent {

// Reads memory that the kernel has read for a system call of a process before the call waits, so
// that its pages are there. Returns fewer bytes if the rest lies in a page that cannot be read;
// none if a thread of the process is in uninterruptible sleep, because reading may wait for it.
// Thread: any, but not the loop's.
std::string MemoryOf(pid_t pid, uint64_t address, size_t bytes);

}  // namespace rankrun::agent
