#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace rankrun {

// Creates an empty file in memory, without a name and close-on-exec. Where the kernel has no
// memfd_create (before Linux 3.17) or a sandbox forbids it, takes an unlinked file of /dev/shm,
// which has no seals. `name` is for /proc.
// Errors: kExhausted, kSystem, "create a memory file: ...".
Result<Fd> CreateMemoryFile(const char* name);

// Fixes the size of a file of CreateMemoryFile for ever. Returns false, with errno, if it has no
// seals: then a process that has it open can cut it, and readers of its memory die of SIGBUS.
bool SealSize(const Fd& file);

// Returns whether CreateMemoryFile gives files that can be sealed.
bool HasSealedMemory();

}  // namespace rankrun
