#pragma once

#include <cstdint>
#include <vector>

#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// Reads `work` of each worker that runs: from /proc of it and of all processes below it, and from
// the kernel's socket diagnosis. Connections to `store_port` are left out; those of a worker with a
// process in another network namespace are unknown. `process` has been read.
// Takes some tens of milliseconds for many workers. Thread: any, but not the loop's.
void AddWork(std::vector<WorkerSample>& samples, uint16_t store_port);

}  // namespace rankrun::agent
