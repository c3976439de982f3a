#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/write_all.h"

namespace rankrun::cli {

Result<void> WriteOutputFile(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  const std::string target = is_there ? fs::canonical(path, error).string() : path;
  const bool is_file = !is_there || fs::is_regular_file(target, error);
  const std::string opened = is_file ? target + ".tmp" : target;
  const int flags = is_file ? O_CREAT | O_TRUNC : 0;
  Fd fd(open(opened.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666));
  if (!fd) return SystemError("create " + opened, errno);
  auto written = TryWriteAll(fd.get(), text);
  if (!written) written = std::move(written).error().In("write " + opened);
  if (!is_file) return written;
  if (written && rename(opened.c_str(), target.c_str()) != 0) {
    written = SystemError("rename " + opened, errno);
  }
  if (!written) unlink(opened.c_str());
  return written;
}

}  // namespace rankrun::cli
