#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/job/kept_entries.h"
#include "base/result.h"

namespace rankrun::agent {

// Files with kept reports end in this.
constexpr std::string_view kReportSuffix = ".report.json";

// Returns the name of the file of a job: its run id without characters that a file name must
// not have, and the id of the node in the job. Pure.
std::string ReportFileName(std::string_view run_id, uint64_t node_id);

// Returns the files of kept reports in a folder, the newest first. Blocks.
// Errors: kSystem; kNotFound if there is no such folder.
Result<std::vector<KeptEntry>> ListReports(const std::string& folder);

// Makes the folder, for its user alone, if it is missing.
// Errors: kSystem.
Result<void> MakeReportFolder(const std::string& folder);

// Writes a report, in the place of one with the same name, and removes old ones
// (agent/job/kept_entries.h) and drafts of killed agents. Blocks.
// Errors: kSystem; the report with this name is as before.
Result<void> WriteReport(const std::string& folder, const std::string& name,
                         const std::string& text);

}  // namespace rankrun::agent
