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

// For text of several lines: like OneLine, but keeps line ends. "\r\n" is one.
std::string Lines(std::string_view bytes);

// Returns the number of bytes at the end of a piece of text that Lines can only show together with
// the next piece: a part of a character, or "\r".
size_t IncompleteEnd(std::string_view bytes);

bool IsUtf8(std::string_view bytes);

// Returns hexadecimal digits: "00ff10".
std::string Hex(std::string_view bytes);

}  // namespace rankrun
