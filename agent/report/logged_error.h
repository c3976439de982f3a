#pragma once

#include <string>
#include <string_view>

namespace rankrun::agent {

// Returns the first line of the error that a program has logged shortly before the error with which
// it ended, as one that catches an exception, skips its work and then meets a peer that it has
// left behind. Returns nothing if there is none, or if it is about a peer itself. Pure.
std::string LoggedError(std::string_view standard_error);

}  // namespace rankrun::agent
