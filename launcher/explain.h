#pragma once

#include <string>

#include "launcher/command_line.h"
#include "launcher/flag_table.h"
#include "launcher/job_settings.h"

namespace rankrun::launcher {

// What --explain prints: each setting that is no default with its origin, what
// has no effect and why, the plan, and the environment of rank 0 as far as
// rankrun sets it. `plan` has its program. Pure.
std::string ExplainText(const FlagTable& table, const CommandLine& line, const JobPlan& plan,
                        const Machine& machine);

}  // namespace rankrun::launcher
