#pragma once

#include <optional>
#include <string_view>

#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// Returns the collective for which NCCL's watchdog timed out, as its last text in `output`
// describes it. Pure.
// Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
std::optional<GroupCall> CallInWatchdogText(std::string_view output);

}  // namespace rankrun::agent
