#pragma once

namespace rankrun::agent {

// Interface of librankrun_topology.so. Linking hwloc would cost 5 ms at every
// start, so only jobs that bind their workers load it. The types are plain C
// because the plug-in shares no library with the program.

constexpr int kTopologyAbiVersion = 1;
constexpr const char* kTopologyPluginSymbol = "rankrun_topology_plugin";

// A hardware thread. All numbers except `core` are as in Core.
struct TopologyCpu {
  int cpu;
  int core;  // the same for all hardware threads of a core
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
