#pragma once

#include <string>
#include <string_view>

namespace rankrun::agent {

// Checks the readers of the control plane with `input`, the bytes of a
// stranger. Its first byte is the size of the parts in which the rest arrives.
// Reads the rest in such parts, as a whole and byte by byte, and gives each
// frame to all functions that take one. Returns the first broken promise;
// empty: none.
std::string CheckControlInput(std::string_view input);

}  // namespace rankrun::agent
