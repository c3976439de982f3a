#pragma once

#include <mpi.h>

#include <string>

#include "base/result.h"

namespace rankrun::comm::mpi {

// Returns kSystem, "<function>: <MPI's words>", unless `status` is a success.
Result<void> Mpi(int status, const char* function);

// Returns why the first group of MPI in this process cannot have `world_size` ranks:
// kInvalid, no launcher of MPI has started this process, or it has started another number.
// MPI starts in all processes at once.
Result<void> CheckMpi(int world_size);

// Starts MPI in this process, unless the program has; then it also ends MPI when the
// process ends. Waits for all processes of the launcher.
// Errors: kInvalid, MPI lacks MPI_THREAD_MULTIPLE; kSystem.
// Thread: any.
Result<void> StartMpi();

// Returns a text that differs, where the launcher gives one, between jobs of MPI.
std::string MpiNamespace();

}  // namespace rankrun::comm::mpi
