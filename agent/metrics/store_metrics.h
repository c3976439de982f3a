#pragma once

#include <vector>

#include "agent/metrics/exposition.h"
#include "store/server/server_stats.h"

namespace rankrun::agent {

// Adds the metrics of the workers' store, which begin anew with each attempt. Pure.
void AddStore(std::vector<MetricFamily>& families, const store::ServerStats& stats);

}  // namespace rankrun::agent
