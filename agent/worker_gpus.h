#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "base/result.h"

namespace rankrun::agent {

// The GPUs that the job was given, as CUDA_VISIBLE_DEVICES names them: typed,
// else the variable's. Nothing: neither, it has all. Pure, as the rest here.
std::optional<std::vector<std::string>> NamedGpus(const JobSpec& spec);

// Where those names come from: "--gpus 0,1", "CUDA_VISIBLE_DEVICES=0,1".
std::string OriginOfGpus(const JobSpec& spec);

// CUDA_VISIBLE_DEVICES of a worker. Nothing: the user's own, or none.
// Source: torchrun's --virtual-local-rank; without a list the local rank itself.
std::optional<std::string> CudaVisibleDevices(const JobSpec& spec, int local_rank);

// Errors: kInvalid if each worker is to see one GPU and too few are named.
Result<void> CheckGpus(const JobSpec& spec);

}  // namespace rankrun::agent
