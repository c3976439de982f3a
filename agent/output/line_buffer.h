#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

  // Returns the last `max_bytes`, or all that are kept, if those are fewer.
  std::string Last(size_t max_bytes) const {
    return kept_.substr(kept_.size() - std::min(max_bytes, kept_.size()));
  }

  // Forgets all but the last `max_bytes`.
  void Cut(size_t max_bytes);

  // Bytes of the stream from position `begin` on.
  struct Part {
    std::string text;
    uint64_t begin;  // later than the position that was asked for, if older bytes are not kept
    uint64_t end() const { return begin + text.size(); }
  };
  // Returns at most `max_bytes` of those after `position`, the oldest first. Does not cut a line
  // if there is a whole one, nor a character of UTF-8.
  Part After(uint64_t position, size_t max_bytes) const;

  size_t total_bytes() const { return total_bytes_; }

 private:
  std::string kept_;
  size_t total_bytes_ = 0;
};

// Returns the last `count` lines of a text, without their ends. Drops the text
// that a carriage return hides on a terminal.
std::vector<std::string> LastLines(std::string_view text, size_t count);

}  // namespace rankrun::agent
