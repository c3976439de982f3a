// librankrun_topology.so: reads the machine with hwloc and passes it on in the
// C types of agent/machine/topology_plugin.h.

#include <hwloc.h>

#include <cerrno>

#include "agent/machine/topology_plugin.h"

namespace rankrun::agent {
namespace {

int NumberOf(hwloc_obj_t object) {
  bool known = object->os_index != HWLOC_UNKNOWN_INDEX;
  return static_cast<int>(known ? object->os_index : object->logical_index);
}

int LastCache(hwloc_obj_t cpu) {
  int last = -1;
  for (hwloc_obj_t above = cpu->parent; above != nullptr; above = above->parent) {
    if (hwloc_obj_type_is_dcache(above->type) != 0) last = static_cast<int>(above->gp_index);
  }
  return last;
}

TopologyCpu Describe(hwloc_topology_t topology, hwloc_obj_t cpu) {
  hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, cpu);
  hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, cpu);
  int node = hwloc_bitmap_first(cpu->nodeset);  // with several (HBM), the first has ordinary memory
  return {.cpu = NumberOf(cpu),
          .core = static_cast<int>((core != nullptr ? core : cpu)->gp_index),
          .numa_node = node < 0 ? 0 : node,
          .package = package != nullptr ? NumberOf(package) : 0,
          .last_cache = LastCache(cpu)};
}

int Load(void* context, void (*add)(void* context, const TopologyCpu* cpu)) {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return errno;
  if (hwloc_topology_load(topology) != 0) {
    int failure = errno;
    hwloc_topology_destroy(topology);
    return failure == 0 ? EIO : failure;
  }
  hwloc_obj_t cpu = nullptr;
  while ((cpu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, cpu)) != nullptr) {
    TopologyCpu described = Describe(topology, cpu);
    add(context, &described);
  }
  hwloc_topology_destroy(topology);
  return 0;
}

}  // namespace
}  // namespace rankrun::agent

extern "C" __attribute__((visibility("default"))) const rankrun::agent::TopologyPlugin*
rankrun_topology_plugin() {
  static constexpr rankrun::agent::TopologyPlugin kPlugin{
      .abi_version = rankrun::agent::kTopologyAbiVersion, .load = &rankrun::agent::Load};
  return &kPlugin;
}
