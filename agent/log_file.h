#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"

namespace rankrun::agent {

// How much of `bytes` still goes into a file of `size` bytes that may have
// `limit`; what is left goes into the next one. Cuts behind a newline if one
// is in reach; a line that would fit into a file of its own is not cut.
// `line_open`: the file ends in the middle of a line. Pure.
size_t BytesUntilRotation(std::string_view bytes, uint64_t size, uint64_t limit, bool line_open);

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
  int Rotate();
  int SayWhatIsMissing();

  std::string path_;
  uint64_t limit_;
  Fd fd_;
  uint64_t size_ = 0;
  bool line_open_ = false;
  uint64_t missing_bytes_ = 0;
  int failure_ = 0;       // errno of the last call
  bool told_ = false;     // it has been returned once
  TimePoint retry_at_{};  // of a file that failed
};

}  // namespace rankrun::agent
