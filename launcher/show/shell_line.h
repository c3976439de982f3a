#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/job_settings.h"

namespace rankrun::launcher {

// Quotes a word, or each word of a command, for a POSIX shell. Pure.
std::string ShellQuoted(std::string_view word);
std::string ShellLine(const std::vector<std::string>& words);

// Returns the text of --dry-run: for each worker a command that a shell can
// run, "env RANK=0 ... program arguments", with the variables that are not in
// our environment. No agent hosts a store then, so rank 0 hosts it, at the port
// of the plan or at torchrun's 29500. A comment states the assumptions about
// several nodes. `folder` is that of --chdir, or empty. Pure.
std::string DryRunText(const JobPlan& plan, const Machine& machine, const std::string& folder);

}  // namespace rankrun::launcher
