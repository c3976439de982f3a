#pragma once

#include <string>
#include <vector>

#include "agent/job/nodes_spec.h"

namespace rankrun::launcher {

// Returns the rows of --explain about the nodes of a job: a name and a text
// each, without the secret. Pure.
std::vector<std::vector<std::string>> NodesRows(const agent::NodesSpec& nodes);

// Returns whether a worker's variable gets its value in the rendezvous. Pure.
bool IsOfRound(const agent::NodesSpec& nodes, const std::string& variable);

}  // namespace rankrun::launcher
