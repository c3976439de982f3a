#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Small parts of parsers. Pure.
namespace rankrun::launcher {

// A number that is all of `text`.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// At least one part: "a,,b" has an empty one, and "" is one.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// Without blanks at both ends.
std::string_view Stripped(std::string_view text);

// "true" or "false" for what a switch may be set to: 1, true, yes, 0, false, no.
std::optional<std::string> SwitchText(std::string_view text);

// What is wrong with any other text.
std::string WrongSwitch(std::string_view text);

// ", got \"text\""
std::string Got(std::string_view text);

}  // namespace rankrun::launcher
