#pragma once

#include <string>
#include <vector>

#include "agent/job/job_spec.h"

namespace rankrun::agent {

// Returns the argv of one worker. Replaces ${local_rank} and $local_rank after
// argv[0], and "$$" by "$" if `program` halves dollars. Pure.
// Source: pytorch.org/docs/stable/elastic/run.html, whose rules are those of
// Python's string.Template.
std::vector<std::string> ArgumentsFor(const Program& program, int local_rank);

}  // namespace rankrun::agent
