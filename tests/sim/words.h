#pragma once

#include <string>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_events.h"
#include "base/clock.h"

namespace rankrun::sim {

// Describes a message, for traces.
std::string Words(const agent::MemberMessage& message);
std::string Words(const agent::CoordinatorMessage& message);
std::string Words(agent::JobPhase phase);
// Returns the event as `rankctl events` prints it.
std::string Words(const agent::Announcement& announcement, Duration since_start);

}  // namespace rankrun::sim
