#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <string>

namespace rankrun::agent {

// Program rankrun-stacks: reads the stacks of processes, each in a process of its own, so that
// one that hangs or breaks harms no other. Prints one line of JSON for each process as soon as
// it is complete, or with the facts known so far when the budget is over.
// Usage: rankrun-stacks BUDGET_MS PID...
int RunStacksHelper(std::span<const std::string> arguments);

}  // namespace rankrun::agent
