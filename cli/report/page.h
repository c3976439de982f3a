#pragma once

#include <string>

#include "cli/report/kept_job.h"

namespace rankrun::cli {

// Returns a page about a job: its outcome, the first cause of each failed attempt, the timeline
// of its ranks, the last operations, and the report as it was printed. One file of HTML that is
// XML, too, needs no other file and no script. All texts are escaped. Pure.
std::string ReportPage(const KeptJob& job);

}  // namespace rankrun::cli
