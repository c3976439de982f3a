#pragma once

#include <string_view>

#include "agent/job/job_spec.h"
#include "launcher/settings/environment.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Parses the value of --metrics: "9400", "10.0.0.1:9400", "[::1]:9400" or "unix:/run/job.sock".
// Errors: kInvalid, "want ..., got ...".
Result<agent::MetricsAddress> ParseMetricsAddress(std::string_view text);

// Returns the user's folder for kept reports, which rankrun fills and `rankctl report` reads:
// $XDG_STATE_HOME/rankrun/reports, or the same below ~/.local/state. Empty: the user has none.
std::string DefaultReportFolder(const Environment& environment);

// Sets the address of the metrics and the folder for kept reports.
Result<void> ReadObservers(const Settings& settings, const Environment& environment,
                           agent::JobSpec& spec);

}  // namespace rankrun::launcher
