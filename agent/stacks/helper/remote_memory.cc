#include "agent/stacks/helper/remote_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <vector>

namespace rankrun::agent {
namespace {

// The kernel copies whole elements only, so each element ends with a page.
constexpr uint64_t kPage = 4096;
constexpr size_t kMaxElements = 64;  // of one call

size_t ReadElements(pid_t pid, uint64_t address, std::span<char> bytes) {
  std::vector<iovec> elements;
  size_t wanted = 0;
  while (wanted < bytes.size() && elements.size() < kMaxElements) {
    const uint64_t from = address + wanted;
    const size_t size = std::min<uint64_t>(kPage - from % kPage, bytes.size() - wanted);
    elements.push_back({reinterpret_cast<void*>(from), size});
    wanted += size;
  }
  iovec local{bytes.data(), wanted};
  const ssize_t count = process_vm_readv(pid, &local, 1, elements.data(), elements.size(), 0);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

}  // namespace

size_t ProcessMemory::ReadSome(uint64_t address, std::span<char> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t count = ReadElements(pid_, address + done, bytes.subspan(done));
    if (count == 0) break;
    done += count;
  }
  return done;
}

}  // namespace rankrun::agent
