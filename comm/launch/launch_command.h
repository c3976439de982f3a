#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <rankrun/launch.h>

#include "base/result.h"

namespace rankrun::comm {

// Descriptors that rankrun inherits from the calling program.
constexpr int kEventsFd = 3;
constexpr int kLifelineFd = 4;

// Returns the command line of rankrun for a job. Pure.
// Errors: kInvalid, with the name of the field.
Result<std::vector<std::string>> CommandFor(const LaunchSpec& spec, const std::string& executable);

// Returns the longest time that rankrun may take to end a job: the time that
// the spec gives the workers, and some for rankrun itself. Pure.
std::chrono::milliseconds LongestEnd(const LaunchSpec& spec);

// Returns the environment of rankrun: `own`, overridden by that of the spec.
// Pure.
// Errors: kInvalid, with the wrong name.
Result<std::vector<std::string>> EnvironmentFor(const LaunchSpec& spec,
                                                const std::vector<std::string>& own);

// Returns the absolute path of rankrun. Reads the file system.
// Errors: kInvalid, with the places that were searched.
Result<std::string> FindExecutable(const LaunchSpec& spec);

}  // namespace rankrun::comm
