#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun {

// Processors as the kernel numbers them, ascending.
using Cpus = std::vector<int>;

// Returns the CPUs that this process may run on. Errors: kSystem.
Result<Cpus> AllowedCpus();

// Returns the mask for sched_setaffinity.
std::vector<unsigned long> CpuMask(const Cpus& cpus);

// Returns "0-3,8,10-11", as taskset reads it.
std::string FormatCpus(const Cpus& cpus);

}  // namespace rankrun
