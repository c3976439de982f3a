#pragma once

#include <string>

#include "cli/report/kept_job.h"

namespace rankrun::cli {

// Most ranks that a timeline has a row for; the causes are always among them.
constexpr size_t kMaxTimelineRows = 128;

// Returns the timeline of a job as an SVG element: a row for each rank, a bar for each of its
// lives, the causes marked, and the last operations where they ended. Pure.
std::string TimelineSvg(const KeptJob& job);

}  // namespace rankrun::cli
