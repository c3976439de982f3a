#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Small parts of parsers. Pure.
namespace rankrun::launcher {

// Returns at least one part. "a,,b" has an empty part, and "" is one.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// Letters of ASCII only.
std::string Uppercase(std::string text);

// Returns the text without blanks at both ends.
std::string_view Stripped(std::string_view text);

// Returns "true" for 1, true and yes, "false" for 0, false and no, and nothing
// for other texts.
std::optional<std::string> SwitchText(std::string_view text);

// Returns the error message for any other text.
std::string WrongSwitch(std::string_view text);

// Returns ", got \"text\"", the end of an error message.
std::string Got(std::string_view text);

}  // namespace rankrun::launcher
