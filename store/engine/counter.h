#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rankrun::store {

// Numbers that ADD stores as decimal text. Pure.

// Parses as std::stoll, which PyTorch's stores use: accepts leading blanks and
// a sign, ignores trailing characters. Returns nothing if `text` does not start
// with a number.
inline std::optional<int64_t> ParseCounter(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;  // from_chars would take it
  }
  int64_t number = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

// Sums wrap around, as they do in PyTorch in practice.
inline int64_t WrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace rankrun::store
