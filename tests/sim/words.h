#pragma once

#include <string>

#include "agent/control_message.h"
#include "agent/coordinator_events.h"

namespace rankrun::sim {

// A message in words, for a person who reads a trace.
std::string Words(const agent::MemberMessage& message);
std::string Words(const agent::CoordinatorMessage& message);
std::string Words(agent::JobPhase phase);

}  // namespace rankrun::sim
