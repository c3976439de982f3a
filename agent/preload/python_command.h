#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun::agent {

// Returns the number of words between the interpreter and the program in a command line of Python:
// its options, with their values. The program is then a file, `-m MODULE` or `-c CODE`. Pure.
// Errors: kInvalid if there is no such program, or with an option that a running interpreter cannot
// have for a program: "-i".
// Source: https://docs.python.org/3/using/cmdline.html
Result<size_t> CountPythonOptions(const std::vector<std::string>& arguments);

}  // namespace rankrun::agent
