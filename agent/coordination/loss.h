#pragma once

#include <cstdint>
#include <string>

#include "agent/coordination/coordinator_node.h"
#include "agent/coordination/round.h"
#include "agent/job/nodes_spec.h"
#include "base/clock.h"

// Causes of the loss of a node, and their texts. Pure.
namespace rankrun::agent {

// Returns the cause that ends a round or, if so configured, the job.
Cause LossCause(const std::string& text, LostNode on_lost_node);

// Returns "node n2 has been silent for 10.0 s (--node-timeout)".
std::string SilenceText(const Hello& hello, Duration node_timeout);

// Returns "node n2 is lost: its rankrun was killed (port 4711 refuses connections)".
std::string GoneText(const Hello& hello, uint16_t port);

// Returns the text on a node that sends beats, but has not answered.
std::string GivenUpText(const CoordinatorNode& node);

// Returns "node n2 counts as lost: rank 3, pid 71 (python3), state D in nfs_wait, does not die of
// SIGKILL" for a node whose hello names such a process.
std::string StuckText(const Hello& hello, const NodeAssignment& assignment);

}  // namespace rankrun::agent
