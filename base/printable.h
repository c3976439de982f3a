#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankrun {

// Bytes as text that a terminal shows and does not obey. Pure. Text of UTF-8
// stays; control characters, those that turn the direction of writing, and
// bytes that are no UTF-8 become "\n", "\t", "\r" or "\x1b".

// Unambiguous: a backslash becomes two.
std::string Escaped(std::string_view bytes);

// The same, cut to `width` characters, of which the last three are then "...".
std::string EscapedAndCut(std::string_view bytes, size_t width);

// For a line that may have been escaped before: a backslash stays one, and a tab
// a tab. Cut, if it is too wide, as EscapedAndCut does.
std::string OneLine(std::string_view bytes, size_t width = SIZE_MAX);

bool IsUtf8(std::string_view bytes);

// "00ff10"
std::string Hex(std::string_view bytes);

}  // namespace rankrun
