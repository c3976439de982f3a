#pragma once

#include <optional>

#include "launcher/scheduler.h"

namespace rankrun::launcher {

// Nothing: we are not in a job of SLURM. Pure.
std::optional<Scheduler> ReadSlurm(const Environment& environment);

}  // namespace rankrun::launcher
