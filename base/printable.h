#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankrun {

// Convert bytes to text that does not control the terminal. Pure. UTF-8 text
// stays. Control characters, characters that change the direction of writing,
// and bytes that are not UTF-8 become "
// ", "\t", "\r" or "\x1b".

// Unambiguous: doubles each backslash.
std::string Escaped(std::string_view bytes);

// Like Escaped, cut to `width` characters; the last three are then "...".
std::string EscapedAndCut(std::string_view bytes, size_t width);

// For a line that may have been escaped before: keeps backslashes and tabs.
// Cuts a line that is too wide as EscapedAndCut does.
std::string OneLine(std::string_view bytes, size_t width = SIZE_MAX);

bool IsUtf8(std::string_view bytes);

// Returns hexadecimal digits: "00ff10".
std::string Hex(std::string_view bytes);

}  // namespace rankrun
