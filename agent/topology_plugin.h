#pragma once

namespace rankrun::agent {

// What librankrun_topology.so exports: hwloc costs 5 ms at every start where it
// is linked, so that only a job that binds its workers loads it. Plain C types:
// the plug-in shares no library with the program.

constexpr int kTopologyAbiVersion = 1;
constexpr const char* kTopologyPluginSymbol = "rankrun_topology_plugin";

// A hardware thread; all numbers but the core's are as Core has them.
struct TopologyCpu {
  int cpu;
  int core;  // the same for those of one core
  int numa_node;
  int package;
  int last_cache;
};

struct TopologyPlugin {
  int abi_version;
  // Calls `add` for each hardware thread, neighbours one after the other.
  // Returns 0, or errno.
  int (*load)(void* context, void (*add)(void* context, const TopologyCpu* cpu));
};

using TopologyPluginFunction = const TopologyPlugin*();

}  // namespace rankrun::agent
