#pragma once

#include "comm/core/debug_level.h"

namespace rankrun::comm {

// Returns a view of the variables of a process that may be one of mpirun or
// srun. Without RANK, their variables stand for RANK, WORLD_SIZE, LOCAL_RANK and
// LOCAL_WORLD_SIZE as far as these are not set: OMPI_COMM_WORLD_*, PMI_* with
// MPI_LOCAL*, or SLURM_* inside of a step. Pure.
// Source: docs.open-mpi.org, "Environment variables"; the PMI of MPICH's Hydra;
// the man page srun(1).
GetVariable WithMpiLauncher(const GetVariable& get);

}  // namespace rankrun::comm
