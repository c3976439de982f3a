#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <rankrun/launch.h>

#include "base/result.h"

namespace rankrun::comm {

// The descriptors under which rankrun finds what it shares with its caller.
constexpr int kEventsFd = 3;
constexpr int kLifelineFd = 4;

// rankrun's command line for a job. Pure.
// Errors: kInvalid, a sentence that names the field.
Result<std::vector<std::string>> CommandFor(const LaunchSpec& spec, const std::string& executable);

// How long rankrun may take to end a job: what the spec leaves the workers, and
// some for itself. Pure.
std::chrono::milliseconds LongestEnd(const LaunchSpec& spec);

// Its environment: `own` with that of the spec over it. Pure. Errors: kInvalid.
Result<std::vector<std::string>> EnvironmentFor(const LaunchSpec& spec,
                                                const std::vector<std::string>& own);

// Where rankrun is: an absolute path. Looks at files.
// Errors: kInvalid, where it was looked for.
Result<std::string> FindExecutable(const LaunchSpec& spec);

}  // namespace rankrun::comm
