#pragma once

#include <optional>
#include <string_view>

#include "launcher/scheduler/scheduler.h"

namespace rankrun::launcher {

// Returns nothing unless mpirun of Open MPI started us. Pure.
std::optional<Scheduler> ReadOpenMpi(const Environment& environment);

// The same for MPICH, Intel MPI and other programs that set the variables of
// PMI.
std::optional<Scheduler> ReadPmi(const Environment& environment);

// Returns whether an MPI launcher or srun has prepared this process for
// MPI_Init. Pure.
bool IsPreparedForMpi(const Environment& environment);

// Returns whether the variable belongs to that preparation, such as PMIX_RANK.
// A process that inherits it cannot start MPI. Pure.
bool IsOfMpi(std::string_view variable);

}  // namespace rankrun::launcher
