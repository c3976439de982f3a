#include "agent/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/result.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kRetryPause{1};

}  // namespace

size_t BytesUntilRotation(std::string_view bytes, uint64_t size, uint64_t limit, bool line_open) {
  if (limit == 0 || size + bytes.size() <= limit) return bytes.size();
  size_t room = size < limit ? static_cast<size_t>(limit - size) : 0;
  size_t newline = bytes.substr(0, room).rfind('\n');
  if (newline != std::string_view::npos) return newline + 1;
  size_t line_end = bytes.find('\n');
  size_t line = line_end == std::string_view::npos ? bytes.size() : line_end + 1;
  bool fits_alone = !line_open && line <= limit;
  return fits_alone && size > 0 ? 0 : room;
}

std::optional<std::string> LogFile::Write(std::string_view bytes, TimePoint now) {
  if (failure_ != 0 && now < retry_at_) {
    missing_bytes_ += bytes.size();
    return std::nullopt;
  }
  failure_ = fd_ ? 0 : Open();
  if (failure_ == 0 && missing_bytes_ > 0) failure_ = SayWhatIsMissing();
  if (failure_ == 0) {
    failure_ = Append(bytes);
  } else {
    missing_bytes_ += bytes.size();
  }
  if (failure_ == 0) return std::nullopt;
  retry_at_ = now + kRetryPause;
  if (std::exchange(told_, true)) return std::nullopt;
  return SystemError("write to " + path_, failure_).message;
}

std::optional<std::string> LogFile::Finish(std::string_view bytes, TimePoint now) {
  retry_at_ = now;
  std::optional<std::string> trouble = Write(bytes, now);
  if (missing_bytes_ == 0) return trouble;
  std::string lost = std::to_string(missing_bytes_) + " bytes of " + path_ + " are lost";
  return SystemError(lost, failure_).message;
}

int LogFile::Open() {
  // A folder that was not there yet, or is not any more.
  std::error_code ignored;  // the open tells
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  int how = size_ == 0 && missing_bytes_ == 0 ? O_TRUNC : 0;
  fd_.Reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | how, 0666));
  return fd_ ? 0 : errno;
}

int LogFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t part = BytesUntilRotation(bytes, size_, limit_, line_open_);
    int failure = part == 0 ? Rotate() : AppendPart(bytes.substr(0, part));
    if (failure != 0) {
      missing_bytes_ += bytes.size() - part;
      return failure;
    }
    bytes.remove_prefix(part);
  }
  return 0;
}

int LogFile::AppendPart(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      missing_bytes_ += bytes.size();
      return errno;
    }
    size_ += static_cast<uint64_t>(count);
    line_open_ = bytes[static_cast<size_t>(count) - 1] != '\n';
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

int LogFile::Rotate() {
  if (rename(path_.c_str(), (path_ + ".1").c_str()) != 0 && errno != ENOENT) return errno;
  fd_.Reset();
  size_ = 0;
  line_open_ = false;
  return Open();
}

int LogFile::SayWhatIsMissing() {
  uint64_t missing = missing_bytes_;
  std::string text = line_open_ ? "\n" : "";
  text += "[rankrun: " + std::to_string(missing) + " bytes are missing here]\n";
  int failure = AppendPart(text);
  missing_bytes_ = failure == 0 ? 0 : missing;
  return failure;
}

}  // namespace rankrun::agent
