#pragma once

#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "tests/sim/verdict/scene.h"

namespace rankrun::sim {

// Returns what a coordinator decides on a round that ends as in the scene. The dice choose in
// which order it hears from the nodes.
agent::RoundOutcome DecideOnRound(const Scene& scene, Dice& dice);

}  // namespace rankrun::sim
