#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <rankrun/launch.h>

#include "base/spawn.h"

namespace rankrun::comm {

// What the events of a job (docs/events.md) say about it.
struct JobStory {
  LaunchResult result;
  bool started = false;
  bool ended = false;
  std::optional<std::string> refusal;  // the job was refused: why
};

// Lines that are cut or unknown are skipped: a killed rankrun leaves some. Pure.
JobStory ReadStory(std::string_view events);

// The result of a job whose rankrun ended with `exit`, or nobody knows how.
// Pure. Errors: kInvalid, it was refused.
Result<LaunchResult> Conclude(JobStory story, std::optional<ProcessExit> exit);

}  // namespace rankrun::comm
