#pragma once

#include <string>

#include "agent/report/attempt_record.h"

namespace rankrun::launcher {

// Returns the report on a failed attempt for the user, in this order: the
// cause, other primary failures with their last lines, the other workers in
// groups, and the next step. The text ends in a newline. Pure.
std::string FormatReport(const agent::AttemptRecord& record);

}  // namespace rankrun::launcher
