#pragma once

#include <string>

#include "agent/attempt_record.h"

namespace rankrun::launcher {

// The report on a failed attempt, for a person: the cause first, then the
// other workers, those that failed by themselves with their last words, the
// others in groups, then what happens next. Ends in a newline. Pure.
std::string FormatReport(const agent::AttemptRecord& record);

}  // namespace rankrun::launcher
