#pragma once

#include <memory>

#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm::mpi {

// Connects this rank to all others by MPI, which must have started all of them. The ranks
// of the group are those of the job, and need not be MPI's. The ranks meet three times,
// where a text that begins with '!' is the reason why a rank cannot go on:
//
//   <prefix>/able/<group rank>    "": MPI can start, which it does on all ranks at once
//   <prefix>/rank/<group rank>    "<namespace of the MPI job> <rank in MPI_COMM_WORLD>"
//   <prefix>/ready/<group rank>   "": the rank will make the group's communicator
//
// Errors: kInvalid, MPI has not started this process, or not all ranks; kTimeout; kCancelled,
// a death; kSystem from MPI, whose errors on MPI_COMM_WORLD end the job.
Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);

}  // namespace rankrun::comm::mpi
