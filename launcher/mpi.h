#pragma once

#include <optional>

#include "launcher/scheduler.h"

namespace rankrun::launcher {

// Nothing: Open MPI's mpirun has not started us. Pure.
std::optional<Scheduler> ReadOpenMpi(const Environment& environment);

// The same for MPICH's and Intel's, and for others who speak PMI.
std::optional<Scheduler> ReadPmi(const Environment& environment);

}  // namespace rankrun::launcher
