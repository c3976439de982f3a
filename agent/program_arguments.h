#pragma once

#include <string>
#include <vector>

#include "agent/job_spec.h"

namespace rankrun::agent {

// The argv of one worker: behind argv[0], ${local_rank} and $local_rank are
// replaced; "$$" stands for itself, or for one "$" if the program has it so;
// everything else stays. Pure.
// Source: pytorch.org/docs/stable/elastic/run.html, whose rules are those of
// Python's string.Template.
std::vector<std::string> ArgumentsFor(const Program& program, int local_rank);

}  // namespace rankrun::agent
