#pragma once

#include <optional>

#include "launcher/scheduler/scheduler.h"

namespace rankrun::launcher {

// Returns nothing unless mpirun of Open MPI started us. Pure.
std::optional<Scheduler> ReadOpenMpi(const Environment& environment);

// The same for MPICH, Intel MPI and other programs that set the variables of
// PMI.
std::optional<Scheduler> ReadPmi(const Environment& environment);

}  // namespace rankrun::launcher
