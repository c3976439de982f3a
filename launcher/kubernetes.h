#pragma once

#include <optional>

#include "launcher/scheduler.h"

namespace rankrun::launcher {

// Nothing: we are not in a pod of an indexed job. Pure, but for `sources`.
std::optional<Scheduler> ReadKubernetes(const SchedulerSources& sources);

}  // namespace rankrun::launcher
