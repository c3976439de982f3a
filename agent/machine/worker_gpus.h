#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "base/result.h"

namespace rankrun::agent {

// Returns the GPUs that the job was given, named as in their variable: those of the flag, or else
// of the variable. Returns nothing if neither is set; the job then has all GPUs. Pure, like all
// functions here.
std::optional<std::vector<std::string>> NamedGpus(const JobSpec& spec);

// Returns the origin of those names, for messages: "--gpus 0,1",
// "CUDA_VISIBLE_DEVICES=0,1".
std::string OriginOfGpus(const JobSpec& spec);

// Returns the value of `spec.gpu_variable` for a worker; nothing: the user's
// value stays.
// Source: torchrun's --virtual-local-rank; without a list, the local rank
// itself.
std::optional<std::string> GpusOfWorker(const JobSpec& spec, int local_rank);

// Errors: kInvalid if each worker gets one GPU and too few are named.
Result<void> CheckGpus(const JobSpec& spec);

}  // namespace rankrun::agent
