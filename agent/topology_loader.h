#pragma once

#include <string>
#include <vector>

#include "agent/topology.h"
#include "base/result.h"

namespace rankrun::agent {

// The machine as hwloc sees it (HWLOC_SYNTHETIC and HWLOC_XMLFILE make it see
// another one), by the first librankrun_topology.so in `folders`.
// Errors: kInvalid: no such plug-in, or one without the hwloc that it needs;
// kSystem: hwloc's own.
Result<Topology> LoadTopology(const std::vector<std::string>& folders);

// Where to look: $RANKRUN_PLUGIN_DIR, then beside this program, where it was
// built and where it is installed.
std::vector<std::string> TopologyPluginFolders();

}  // namespace rankrun::agent
