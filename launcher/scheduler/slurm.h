#pragma once

#include <optional>

#include "launcher/scheduler/scheduler.h"

namespace rankrun::launcher {

// Returns nothing outside of a job of SLURM. Pure.
std::optional<Scheduler> ReadSlurm(const Environment& environment);

}  // namespace rankrun::launcher
