#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace rankrun {

// Returns the number that makes up all of `text`, or nothing if `text` has
// other characters or does not fit. Pure.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace rankrun
