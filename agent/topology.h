#pragma once

#include <vector>

#include "base/cpus.h"

namespace rankrun::agent {

// A core, and what it shares with others.
struct Core {
  Cpus cpus;          // its hardware threads
  int numa_node = 0;  // as the kernel numbers them, like the package
  int package = 0;
  int last_cache = 0;  // cores with the same number share it; -1: none
  bool operator==(const Core&) const = default;
};

// The machine's cores, neighbours beside each other. A value.
struct Topology {
  std::vector<Core> cores;
};

// What is left of `topology` where only `allowed` CPUs may be used. Pure.
Topology Within(const Topology& topology, const Cpus& allowed);

}  // namespace rankrun::agent
