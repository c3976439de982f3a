#pragma once

#include <cstdint>
#include <span>

#include "agent/stacks/helper/python_layout.h"

namespace rankrun::agent {

// Returns the line of the instruction at `offset` bytes in a code object; 0 if it has none.
// `table` may be incomplete or damaged. Pure.
int PythonLineAt(PythonLineTable kind, std::span<const char> table, int first_line, int64_t offset);

}  // namespace rankrun::agent
