#pragma once

#include <string>

#include "launcher/flags/flag_table.h"
#include "launcher/plan/command_line.h"
#include "launcher/plan/job_settings.h"

namespace rankrun::launcher {

// Returns the text of --explain: settings that differ from their defaults, with
// their origins; settings without effect, with the reasons; the plan; and the
// variables of rank 0 that rankrun sets. `plan` has its program. Pure.
std::string ExplainText(const FlagTable& table, const CommandLine& line, const JobPlan& plan,
                        const Machine& machine);

}  // namespace rankrun::launcher
