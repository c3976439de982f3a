#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/write_all.h"

namespace rankrun::cli {
namespace {

constexpr mode_t kNewMode = 0600;  // the output of a job may be confidential
constexpr mode_t kAllModes = 0777;

Result<void> WriteToDevice(const std::string& path, std::string_view text) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return SystemError("open " + path, errno);
  auto written = TryWriteAll(fd.get(), text);
  if (!written) return std::move(written).error().In("write " + path);
  return {};
}

Result<void> WriteDraft(const std::string& draft, mode_t mode, std::string_view text) {
  Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kNewMode));
  if (!fd) return SystemError("create " + draft, errno);
  if (fchmod(fd.get(), mode) != 0) return SystemError("set the mode of " + draft, errno);
  auto written = TryWriteAll(fd.get(), text);
  if (!written) return std::move(written).error().In("write " + draft);
  return {};
}

Result<void> ReplaceFile(const std::string& target, mode_t mode, std::string_view text) {
  const std::string draft = target + ".tmp";
  auto written = WriteDraft(draft, mode, text);
  if (written && rename(draft.c_str(), target.c_str()) != 0) {
    written = SystemError("rename " + draft, errno);
  }
  if (!written) unlink(draft.c_str());
  return written;
}

}  // namespace

Result<void> WriteOutputFile(const std::string& path, std::string_view text) {
  struct stat status;
  const bool is_there = stat(path.c_str(), &status) == 0;
  if (!is_there) return ReplaceFile(path, kNewMode, text);
  // A pipe behind /dev/stdout has no path but this one.
  if (!S_ISREG(status.st_mode)) return WriteToDevice(path, text);
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  if (error) return SystemError("find " + path, error.value());
  return ReplaceFile(target, status.st_mode & kAllModes, text);
}

}  // namespace rankrun::cli
