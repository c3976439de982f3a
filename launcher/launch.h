#pragma once

#include <string>
#include <vector>

#include "agent/incarnation.h"

namespace rankrun::launcher {

// The agent's main(): understands the command line, runs the job, and says
// goodbye to the guardian: also for --help and for what it refuses. A later
// incarnation reads the same command line and goes on with the job.
// `arguments` begin with the name by which the program was called; under the
// name torchrun its defaults are torchrun's.
void RunAgent(const std::vector<std::string>& arguments, agent::Incarnation& incarnation);

}  // namespace rankrun::launcher
