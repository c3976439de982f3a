#pragma once

#include <map>
#include <optional>

#include "agent/health/worker_sample.h"

// Waits of workers for each other's data, from their connections. Pure.
namespace rankrun::agent {

// Returns the only worker whose data all other running workers wait for, directly or because they
// wait for a worker that waits for it; nothing if there is none. Each waits in a call on one
// connection. Such a worker has stopped by itself, or the chain would go on. `workers`: by global
// rank. Takes n log n steps, because it runs on the loop thread of a coordinator of many ranks.
std::optional<int> AwaitedByAll(const std::map<int, WorkerSample>& workers);

}  // namespace rankrun::agent
