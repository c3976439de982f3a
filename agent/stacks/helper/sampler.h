#pragma once

#include <sys/types.h>

#include <functional>

#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {

// Reads the stacks of a process. Calls `emit` after each step, with all that is known by then:
// facts of /proc, functions, source lines. So a caller that ends this process early has the
// steps before. Blocks as the file systems of the programs do.
void SampleProcess(pid_t pid, const std::function<void(const ProcessStacks&)>& emit);

}  // namespace rankrun::agent
