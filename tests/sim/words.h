#pragma once

#include <string>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_events.h"

namespace rankrun::sim {

// Describes a message, for traces.
std::string Words(const agent::MemberMessage& message);
std::string Words(const agent::CoordinatorMessage& message);
std::string Words(agent::JobPhase phase);

}  // namespace rankrun::sim
