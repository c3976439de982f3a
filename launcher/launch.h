#pragma once

#include <string>
#include <vector>

#include "agent/guardian/incarnation.h"

namespace rankrun::launcher {

// Main function of the agent: parses the command line, runs the job, and sends
// the guardian a goodbye, also after --help and errors. A later incarnation
// gets the same command line and resumes the job. `arguments` begin with the
// name of the program; "torchrun" selects the defaults of torchrun.
void RunAgent(const std::vector<std::string>& arguments, agent::Incarnation& incarnation);

}  // namespace rankrun::launcher
