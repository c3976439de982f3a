#pragma once

#include <string>
#include <vector>

#include "agent/nodes_spec.h"

namespace rankrun::launcher {

// What --explain says about the nodes of a job: rows of a name and a text. The
// secret is not in it. Pure.
std::vector<std::vector<std::string>> NodesRows(const agent::NodesSpec& nodes);

// Whether the value of a worker's variable is known only when the nodes have
// met. Pure.
bool IsOfRound(const agent::NodesSpec& nodes, const std::string& variable);

}  // namespace rankrun::launcher
