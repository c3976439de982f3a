#pragma once

#include <string>
#include <string_view>

namespace rankrun::store {

// Size of the head of an input, in bytes. The head contains the limits and the
// lengths of the pieces; the bytes of one client follow.
constexpr size_t kWireInputHead = 8;

// Decodes the client's bytes in these pieces, as a whole, byte by byte, and
// with a naive reader. Returns the first difference or broken promise of the
// decoder; empty if there is none.
std::string CheckWireInput(std::string_view input);

}  // namespace rankrun::store
