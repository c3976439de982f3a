#pragma once

#include <optional>

#include "launcher/scheduler/scheduler.h"

namespace rankrun::launcher {

// Returns nothing outside of a pod of an indexed job. Pure, except for
// `sources`.
std::optional<Scheduler> ReadKubernetes(const SchedulerSources& sources);

}  // namespace rankrun::launcher
