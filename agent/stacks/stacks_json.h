#pragma once

#include <string>
#include <string_view>

#include "agent/stacks/process_stacks.h"
#include "base/result.h"

namespace rankrun::agent {

// Returns the stacks of one process as one line of JSON, with its line end. Replaces bytes
// that are no UTF-8.
std::string FormatStacks(const ProcessStacks& stacks);

// Parses such a line. Cuts texts and lists to the limits of process_stacks.h.
// Errors: kProtocol.
Result<ProcessStacks> ParseStacks(std::string_view line);

}  // namespace rankrun::agent
