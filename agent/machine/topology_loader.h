#pragma once

#include <string>
#include <vector>

#include "agent/machine/topology.h"
#include "base/result.h"

namespace rankrun::agent {

// Loads the topology of this machine from hwloc, by the first
// librankrun_topology.so in `folders`. HWLOC_SYNTHETIC and HWLOC_XMLFILE make
// hwloc report another machine.
// Errors: kInvalid if there is no plug-in or its hwloc library is missing,
// kSystem for errors of hwloc.
Result<Topology> LoadTopology(const std::vector<std::string>& folders);

// Returns the folders to search: $RANKRUN_PLUGIN_DIR, then the folders beside
// this program in the build tree and in an installation.
std::vector<std::string> TopologyPluginFolders();

}  // namespace rankrun::agent
