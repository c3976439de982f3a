#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"

namespace rankrun::agent {

// Returns the argv of one worker. Replaces ${local_rank}, ${rank},
// ${node_rank}, ${world_size} and ${hostname} after argv[0], also without
// braces. Without a `place`, those of the round stay. As torchrun, replaces
// ${local_rank} only, and "$$" by "$". Pure.
// Source: pytorch.org/docs/stable/elastic/run.html, whose rules are those of
// Python's string.Template.
std::vector<std::string> ArgumentsFor(const JobSpec& spec, int local_rank,
                                      const std::optional<NodePlace>& place);

}  // namespace rankrun::agent
