#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// Cuts a byte stream into pieces that can be shown without breaking a line. A
// piece ends at a newline or at a carriage return (progress bars). A line
// longer than kMaxPart is passed on in parts. Pure.
class LineBuffer {
 public:
  static constexpr size_t kMaxPart = 32 * 1024;

  // Returns all lines that `bytes` completes, as one piece; empty if there is
  // none.
  std::string Add(std::string_view bytes);

  // Returns the incomplete last line.
  std::string TakeRest();

 private:
  std::string rest_;
};

// Keeps the last bytes of a stream. Pure.
class TailBuffer {
 public:
  static constexpr size_t kKeptBytes = 64 * 1024;

  void Add(std::string_view bytes);

  // Returns at most kKeptBytes, from the beginning of a line if possible.
  std::string Tail() const;

  size_t total_bytes() const { return total_bytes_; }

 private:
  std::string kept_;
  size_t total_bytes_ = 0;
};

// Returns the last `count` lines of a text, without their ends. Drops the text
// that a carriage return hides on a terminal.
std::vector<std::string> LastLines(std::string_view text, size_t count);

}  // namespace rankrun::agent
