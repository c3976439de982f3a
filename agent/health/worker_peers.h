#pragma once

#include <vector>

#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// Sets `dials` and `peer_wait` of workers, which have the facts of their processes, from the
// connections of this host. Thread: any, but not the loop's.
void AddPeers(const std::vector<WorkerSample*>& workers);

}  // namespace rankrun::agent
