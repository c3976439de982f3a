#pragma once

#include <vector>

#include "base/process/cpus.h"

namespace rankrun::agent {

// A core and the hardware that it shares with other cores.
struct Core {
  Cpus cpus;          // its hardware threads
  int numa_node = 0;  // the kernel's number, as for `package`
  int package = 0;
  int last_cache = 0;  // the same for cores that share it; -1: none
  bool operator==(const Core&) const = default;
};

// The machine's cores; neighbours in the machine are adjacent. A value.
struct Topology {
  std::vector<Core> cores;
};

// Returns the part of `topology` that consists of `allowed` CPUs. Pure.
Topology Within(const Topology& topology, const Cpus& allowed);

}  // namespace rankrun::agent
