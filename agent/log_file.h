#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"

namespace rankrun::agent {

struct Rotation {
  size_t bytes = 0;       // still go into the file; 0: it is to be rotated
  size_t line_bytes = 0;  // of the file's end, that go into the next one first

  bool operator==(const Rotation&) const = default;
};

// What becomes of `bytes` at the end of a file of `size` bytes that may have
// `limit`, `open_line` of them the begin of a line. Cuts behind a newline if
// one is in reach; a line that would fit into a file of its own is not cut,
// unless its begin is too long to be moved. Pure.
Rotation PlanRotation(std::string_view bytes, uint64_t size, uint64_t limit, size_t open_line);

// One log file. A disk that is full or broken loses what cannot be written and
// is tried again each second; then a line in the file says how much is
// missing. Over its limit it becomes "<path>.1", and a new one begins.
// Blocks as the file system does. Thread: one at a time.
class LogFile {
 public:
  // `limit` 0: none. Makes nothing yet.
  explicit LogFile(std::string path, uint64_t limit = 0) : path_(std::move(path)), limit_(limit) {}

  const std::string& path() const { return path_; }

  // Appends; the first call creates the file, also for no bytes. Returns why
  // not, at the first failure only.
  std::optional<std::string> Write(std::string_view bytes, TimePoint now);

  // The last Write, tried whenever the one before was. Returns how much is lost
  // for good and why, also if a failure has been told.
  std::optional<std::string> Finish(std::string_view bytes, TimePoint now);

 private:
  int Open();
  int Append(std::string_view bytes);
  int AppendPart(std::string_view bytes);
  int Rotate(size_t line_bytes);
  int MoveEnd(const Fd& old, size_t line_bytes);
  int SayWhatIsMissing();

  std::string path_;
  uint64_t limit_;
  Fd fd_;
  uint64_t size_ = 0;
  size_t open_line_bytes_ = 0;  // at its end
  uint64_t missing_bytes_ = 0;
  int failure_ = 0;       // errno of the last call
  bool told_ = false;     // it has been returned once
  TimePoint retry_at_{};  // of a file that failed
};

}  // namespace rankrun::agent
