#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/refused_call.h"

namespace rankrun {
Result<Fd> CreateMemoryFile(const char* name) {
  Fd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file) return file;
  if (!IsRefusedCall(errno)) return SystemError("create a memory file", errno);
  char path[] = "/dev/shm/rankrun-XXXXXX";
  file.Reset(mkostemp(path, O_CLOEXEC));
  if (!file) {
    return SystemError(
        "create a memory file: the system call memfd_create (Linux 3.17) is refused, and /dev/shm",
        errno);
  }
  unlink(path);
  return file;
}

bool SealSize(const Fd& file) {
  return fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
}

bool HasSealedMemory() {
  auto file = CreateMemoryFile("rankrun-probe");
  return file && SealSize(*file);
}

}  // namespace rankrun
