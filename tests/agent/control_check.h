#pragma once

#include <string>
#include <string_view>

namespace rankrun::agent {

// `input` is what a stranger sends to either side of the control plane; its
// first byte says how it is cut. Reads it as it is cut, in one piece and byte by
// byte, and gives each frame to all that take one. Returns where a promise is
// broken; empty: nowhere.
std::string CheckControlInput(std::string_view input);

}  // namespace rankrun::agent
