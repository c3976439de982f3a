#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace rankrun {

Result<void> TryWriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write", errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

void WriteAll(int fd, std::string_view bytes) {
  if (auto written = TryWriteAll(fd, bytes); !written) return;
}

}  // namespace rankrun
