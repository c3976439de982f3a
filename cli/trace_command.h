#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Returns `rankctl trace`, which makes one file in the Trace Event format of the traces
// of a job's ranks.
const Command& TraceCommand();

}  // namespace rankrun::cli
