#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

struct Rotation {
  size_t bytes = 0;       // that still go into the file; 0: rotate it first
  size_t line_bytes = 0;  // at the file's end, that move into the next file first

  bool operator==(const Rotation&) const = default;
};

// Decides how many of `bytes` to append to a file of `size` bytes that may have
// `limit` bytes. The last `open_line` bytes of the file are the beginning of a
// line. Cuts after a newline if possible. A line that would fit into a file of
// its own is not cut, unless its beginning is too long to be moved. Pure.
Rotation PlanRotation(std::string_view bytes, uint64_t size, uint64_t limit, size_t open_line);

// One log file. If the disk is full or broken, drops the bytes that cannot be
// written and retries each second. Then a line in the file reports the number
// of missing bytes. A file beyond its limit becomes "<path>.1", and a new one
// begins.
// Blocks as the file system does. Thread: one at a time.
class LogFile {
 public:
  // `limit` 0: none. Creates no file yet.
  explicit LogFile(std::string path, uint64_t limit = 0) : path_(std::move(path)), limit_(limit) {}

  const std::string& path() const { return path_; }

  // Appends `bytes`. The first call creates the file, even for no bytes.
  // Returns the cause of the first failure only.
  std::optional<std::string> Write(std::string_view bytes, TimePoint now);

  // Writes for the last time, and does not wait for the next retry. Returns how
  // many bytes are lost for good and why, even if a failure was reported
  // before.
  std::optional<std::string> Finish(std::string_view bytes, TimePoint now);

 private:
  Result<void> Open();
  Result<void> Append(std::string_view bytes);
  Result<void> AppendPart(std::string_view bytes);
  Result<void> Rotate(size_t line_bytes);
  Result<void> MoveEnd(const Fd& old, size_t line_bytes);
  Result<void> ReportDroppedBytes();

  std::string path_;
  uint64_t limit_;
  Fd fd_;
  uint64_t size_ = 0;
  size_t open_line_bytes_ = 0;  // length of the incomplete line at its end
  uint64_t missing_bytes_ = 0;
  Result<void> state_;     // of the last call
  bool reported_ = false;  // the failure has been returned
  TimePoint retry_at_{};   // after a failure
};

}  // namespace rankrun::agent
