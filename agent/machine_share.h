#pragma once

#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "agent/topology.h"
#include "base/cpus.h"
#include "base/result.h"

namespace rankrun::agent {

// What of this machine each worker of a job gets, by local rank.
struct MachineShare {
  int cores = 0;                  // that we may use; without a binding their hardware threads
  std::vector<int> threads;       // at least 1 for each worker
  std::vector<Cpus> cpus;         // empty: the workers are not bound
  Topology topology;              // empty, too, then
  std::vector<std::string> gpus;  // that the binding went by; empty: none
};

// Looks at the machine as far as the job needs it: hwloc is loaded and GPUs
// are asked for only if the workers are to be bound.
// Errors: kInvalid for what the user can mend, kSystem.
Result<MachineShare> ShareMachine(const JobSpec& spec);

// The CPUs of one worker; empty: it is not bound.
Cpus CpusOf(const MachineShare& share, int local_rank);

// The line that says which OMP_NUM_THREADS the workers get; empty if the user
// has chosen it or there is one worker only. Pure.
std::string ThreadsNotice(const JobSpec& spec, const MachineShare& share);

}  // namespace rankrun::agent
