#include "base/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace rankrun {

Result<void> TryWriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
      continue;
    }
    if (count < 0) return SystemError("write", errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

void WriteLastWords(int fd, std::string_view bytes) {
  constexpr size_t kAtOnce = 512;  // a pipe accepts this much completely or not at all
  constexpr int kPatienceMs = 1000;
  while (!bytes.empty()) {
    pollfd writable{fd, POLLOUT, 0};
    if (poll(&writable, 1, kPatienceMs) == 0) return;
    std::string_view part = bytes.substr(0, kAtOnce);
    if (auto written = TryWriteAll(fd, part); !written) return;
    bytes.remove_prefix(part.size());
  }
}

void WriteAll(int fd, std::string_view bytes) {
  if (auto written = TryWriteAll(fd, bytes); !written) return;
}

}  // namespace rankrun
