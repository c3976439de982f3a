#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/job/job_spec.h"
#include "launcher/plan/job_settings.h"
#include "launcher/plan/program.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Returns whether a line of a Python program imports PyTorch. It may be wrong: in a string, for
// example. Pure.
bool ImportsTorch(std::string_view text);

// Returns the text of a script; nothing if it cannot be read.
using ScriptReader = std::function<std::optional<std::string>(const std::string& path)>;

// Sets the modules of --preload in a plan, if a preloader can fork `program`. `auto` stands for
// PyTorch and the part of it that optimizers import, if the script imports PyTorch. Otherwise
// adds the reason why the flag has no effect.
// Errors: kInvalid if the setting is no list of modules.
Result<void> ReadPreload(const Settings& settings, const ResolvedProgram& program,
                         const ScriptReader& read_file, JobPlan& plan);

}  // namespace rankrun::launcher
