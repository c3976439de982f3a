#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <rankrun/launch.h>

#include "base/process/spawn.h"

namespace rankrun::comm {

// Outcome of a job, read from its events (docs/events.md).
struct JobStory {
  LaunchResult result;
  bool started = false;
  bool ended = false;
  std::optional<std::string> refusal;  // reason, if rankrun refused the job
};

// Skips truncated and unknown lines, because a killed rankrun may leave one.
// Pure.
JobStory ReadStory(std::string_view events);

// Returns the result of a job. `exit` is the exit of rankrun, if known. Pure.
// Errors: kInvalid, rankrun refused the job.
Result<LaunchResult> Conclude(JobStory story, std::optional<ProcessExit> exit);

}  // namespace rankrun::comm
