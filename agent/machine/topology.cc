#include "agent/machine/topology.h"

#include <algorithm>
#include <iterator>

namespace rankrun::agent {

Topology Within(const Topology& topology, const Cpus& allowed) {
  Topology left;
  for (const Core& core : topology.cores) {
    Core part = core;
    part.cpus.clear();
    std::ranges::set_intersection(core.cpus, allowed, std::back_inserter(part.cpus));
    if (!part.cpus.empty()) left.cores.push_back(part);
  }
  return left;
}

}  // namespace rankrun::agent
