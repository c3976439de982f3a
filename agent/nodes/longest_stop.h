#pragma once

#include <algorithm>
#include <chrono>

#include "agent/job/job_spec.h"

namespace rankrun::agent {

// Returns the longest time of a stop on a node: grace and SIGKILL for the
// workers, then the same for their descendants. A process that survives both is
// reported by then. `spec` has nodes.
inline std::chrono::milliseconds LongestStop(const JobSpec& spec) {
  constexpr std::chrono::milliseconds kMax = std::chrono::hours(24 * 7);
  auto grace = std::min(kMax, std::max(spec.shutdown_timeout, spec.save_timeout));
  return grace + 2 * std::min(kMax / 4, spec.nodes->node_timeout);
}

}  // namespace rankrun::agent
