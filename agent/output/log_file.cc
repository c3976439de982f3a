#include "agent/output/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "agent/output/log_directory.h"
#include "base/own_file.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kRetryPause{1};
constexpr size_t kMaxMoved = 64 * 1024;

}  // namespace

Rotation PlanRotation(std::string_view bytes, uint64_t size, uint64_t limit, size_t open_line) {
  if (limit == 0 || size + bytes.size() <= limit) return {bytes.size()};
  size_t room = size < limit ? static_cast<size_t>(limit - size) : 0;
  size_t newline = bytes.substr(0, room).rfind('\n');
  if (newline != std::string_view::npos) return {newline + 1};
  size_t line_end = bytes.find('\n');
  size_t line = open_line + (line_end == std::string_view::npos ? bytes.size() : line_end + 1);
  bool moves = line <= limit && open_line <= kMaxMoved && size > open_line;
  return moves ? Rotation{0, open_line} : Rotation{room};
}

std::optional<std::string> LogFile::Write(std::string_view bytes, TimePoint now) {
  if (!state_ && now < retry_at_) {
    missing_bytes_ += bytes.size();
    return std::nullopt;
  }
  state_ = fd_ ? Result<void>() : Open();
  if (state_ && missing_bytes_ > 0) state_ = ReportDroppedBytes();
  if (state_) {
    state_ = Append(bytes);
  } else {
    missing_bytes_ += bytes.size();
  }
  if (state_) return std::nullopt;
  retry_at_ = now + kRetryPause;
  if (std::exchange(reported_, true)) return std::nullopt;
  return "write to " + state_.error().message;
}

std::optional<std::string> LogFile::Finish(std::string_view bytes, TimePoint now) {
  retry_at_ = now;
  std::optional<std::string> trouble = Write(bytes, now);
  if (missing_bytes_ == 0) return trouble;
  std::string_view cause = state_.error().message;
  const std::string place = path_ + ": ";
  if (cause.starts_with(place)) cause.remove_prefix(place.size());
  return std::to_string(missing_bytes_) + " bytes of " + path_ + " are lost: " + std::string(cause);
}

Result<void> LogFile::Open() {
  // The folder may not exist yet, or may have been removed.
  if (auto made = MakeFolders(std::filesystem::path(path_).parent_path()); !made) return made;
  int how = size_ == 0 && missing_bytes_ == 0 ? O_TRUNC : 0;
  how |= limit_ == 0 ? O_WRONLY : O_RDWR;  // rotation reads the beginning of a line back
  auto opened = OpenOwnFile(path_, O_CREAT | O_APPEND | O_NOFOLLOW | how);
  if (!opened) return std::move(opened).error();
  fd_ = std::move(*opened);
  return {};
}

Result<void> LogFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    auto [part, line_bytes] = PlanRotation(bytes, size_, limit_, open_line_bytes_);
    auto done = part == 0 ? Rotate(line_bytes) : AppendPart(bytes.substr(0, part));
    if (!done) {
      missing_bytes_ += bytes.size() - part;
      return done;
    }
    bytes.remove_prefix(part);
  }
  return {};
}

Result<void> LogFile::AppendPart(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t result = write(fd_.get(), bytes.data(), bytes.size());
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) {
      missing_bytes_ += bytes.size();
      return SystemError(path_, errno);
    }
    auto count = static_cast<size_t>(result);
    size_t newline = bytes.substr(0, count).rfind('\n');
    bool ended = newline != std::string_view::npos;
    open_line_bytes_ = ended ? count - newline - 1 : open_line_bytes_ + count;
    size_ += count;
    bytes.remove_prefix(count);
  }
  return {};
}

Result<void> LogFile::Rotate(size_t line_bytes) {
  if (rename(path_.c_str(), (path_ + ".1").c_str()) != 0 && errno != ENOENT) {
    return SystemError(path_, errno);
  }
  Fd old = std::move(fd_);
  size_ = 0;
  open_line_bytes_ = 0;
  auto opened = Open();
  return opened && line_bytes > 0 ? MoveEnd(old, line_bytes) : opened;
}

// Moves the last `line_bytes` of the old file into the new one. If they cannot
// be read or removed there, they stay and the line is cut.
Result<void> LogFile::MoveEnd(const Fd& old, size_t line_bytes) {
  std::string line(line_bytes, '\0');
  off_t begin = lseek(old.get(), 0, SEEK_END) - static_cast<off_t>(line_bytes);
  bool moves =
      begin >= 0 &&
      pread(old.get(), line.data(), line_bytes, begin) == static_cast<ssize_t>(line_bytes) &&
      ftruncate(old.get(), begin) == 0;
  return moves ? AppendPart(line) : Result<void>();
}

Result<void> LogFile::ReportDroppedBytes() {
  uint64_t missing = missing_bytes_;
  std::string text = open_line_bytes_ > 0 ? "\n" : "";
  text += "[rankrun: " + std::to_string(missing) + " bytes are missing here]\n";
  auto written = AppendPart(text);
  missing_bytes_ = written ? 0 : missing;
  return written;
}

}  // namespace rankrun::agent
