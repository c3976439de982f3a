#pragma once

#include <string>

#include "agent/report/attempt_record.h"

namespace rankrun::launcher {

// Returns what a user can do about the error of a worker, for a report, if the error is one that
// rankrun's own ways of starting a program cause: an input that ended, or an argument that the
// program does not know. Empty: nothing is known. Pure.
std::string HintFor(const agent::WorkerRecord& cause);

}  // namespace rankrun::launcher
