#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Returns `rankctl report`, which shows the kept report on a job.
const Command& ReportCommand();

}  // namespace rankrun::cli
