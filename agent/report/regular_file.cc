#include "agent/report/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace rankrun::agent {

std::optional<std::string> ReadRegularFile(const std::string& path, size_t max_bytes,
                                           std::chrono::system_clock::time_point not_before) {
  Fd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const auto written = std::chrono::seconds(status.st_mtim.tv_sec) +
                       std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  if (written < not_before.time_since_epoch()) return std::nullopt;
  const auto expected = static_cast<size_t>(status.st_size);
  if (expected > max_bytes) return std::nullopt;
  std::string content(expected + 1, '\0');
  size_t size = 0;
  while (size < content.size()) {
    ssize_t count = read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > expected) return std::nullopt;  // it is still being written
  content.resize(size);
  return content;
}

}  // namespace rankrun::agent
