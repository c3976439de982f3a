#pragma once

#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/machine/topology.h"
#include "base/process/cpus.h"
#include "base/result.h"

namespace rankrun::agent {

// Share of this machine that each worker of a job gets, by local rank.
struct MachineShare {
  int cores = 0;                  // allowed cores; without a binding, their hardware threads
  bool is_limited = false;        // `cores` are fewer by the container's limit
  std::vector<int> threads;       // OMP_NUM_THREADS of each worker, at least 1
  std::vector<Cpus> cpus;         // empty: the workers are not bound
  Topology topology;              // empty: the workers are not bound
  std::vector<std::string> gpus;  // used by the binding; empty: none
};

// Examines the machine as far as the job needs it. Loads hwloc and queries the
// GPUs only if the workers are to be bound.
// Errors: kInvalid for mistakes that the user can correct, kSystem.
Result<MachineShare> ShareMachine(const JobSpec& spec);

// Returns the CPUs of one worker; empty: it is not bound.
Cpus CpusOf(const MachineShare& share, int local_rank);

// Returns the line that reports the workers' OMP_NUM_THREADS; empty if the user
// has chosen it or there is only one worker. Pure.
std::string ThreadsNotice(const JobSpec& spec, const MachineShare& share);

}  // namespace rankrun::agent
