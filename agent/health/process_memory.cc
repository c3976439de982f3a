#include "agent/health/process_memory.h"

#include <dirent.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

// A thread in a page fault has the map of the memory locked until its disk answers. A writer that
// waits for that lock blocks all later readers.
bool MayReadMemory(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    const pid_t thread = std::atoi(entry->d_name);
    if (thread > 0 && thread != pid && StateOf(thread) == 'D') return false;
  }
  return true;
}

}  // namespace

std::string MemoryOf(pid_t pid, uint64_t address, size_t bytes) {
  constexpr uint64_t kPage = 4096;
  if (address == 0 || !MayReadMemory(pid)) return "";
  std::string memory(bytes, '\0');
  const size_t first = std::min<uint64_t>(kPage - address % kPage, bytes);
  iovec local{memory.data(), bytes};
  const std::array<iovec, 2> remote = {
      iovec{reinterpret_cast<void*>(address), first},
      iovec{reinterpret_cast<void*>(address + first), bytes - first}};
  const ssize_t size = process_vm_readv(pid, &local, 1, remote.data(), remote.size(), 0);
  memory.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return memory;
}

}  // namespace rankrun::agent
