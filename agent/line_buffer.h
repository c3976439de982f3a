#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// Cuts a byte stream into pieces that may be shown without tearing a line: up
// to a newline, or a carriage return (progress bars), or what has come without
// either once it is longer than a screen can use. Pure.
class LineBuffer {
 public:
  static constexpr size_t kLongestPart = 32 * 1024;

  // All complete lines that `bytes` ends, as one piece; empty if there is none.
  std::string Add(std::string_view bytes);

  // What is left without an end.
  std::string TakeRest();

 private:
  std::string rest_;
};

// The last bytes of a stream. Pure.
class TailBuffer {
 public:
  static constexpr size_t kKeptBytes = 64 * 1024;

  void Add(std::string_view bytes);

  // At most kKeptBytes, from the beginning of a line where there is one.
  std::string Tail() const;

  size_t total_bytes() const { return total_bytes_; }

 private:
  std::string kept_;
  size_t total_bytes_ = 0;
};

// The last `count` lines of a text, without their ends; carriage returns
// leave only what a terminal would still show.
std::vector<std::string> LastLines(std::string_view text, size_t count);

}  // namespace rankrun::agent
