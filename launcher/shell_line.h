#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/job_settings.h"

namespace rankrun::launcher {

// A word as a POSIX shell reads it back. Pure.
std::string ShellQuoted(std::string_view word);
std::string ShellLine(const std::vector<std::string>& words);

// What --dry-run prints: for each worker "env RANK=0 ... program arguments",
// ready to be pasted, with the variables that are not in our environment. Since
// no agent hosts a store then, rank 0 does: at the port that was chosen, else at
// torchrun's 29500. Of several nodes a comment says what is assumed of them.
// `folder` is that of --chdir, or empty. Pure.
std::string DryRunText(const JobPlan& plan, const Machine& machine, const std::string& folder);

}  // namespace rankrun::launcher
