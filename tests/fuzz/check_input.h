#pragma once

#include <string>
#include <string_view>

namespace rankrun::test {

// Gives `input` to the functions that a fuzz target tests, each of which defines
// this function. Returns the first broken promise; empty: none. Memory faults are
// the sanitizers' findings.
std::string CheckInput(std::string_view input);

}  // namespace rankrun::test
