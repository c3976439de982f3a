#include "cli/report/report_command.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "agent/report/report_folder.h"
#include "base/own_file.h"
#include "cli/output.h"
#include "cli/report/kept_job.h"
#include "cli/report/page.h"
#include "launcher/plan/observer_settings.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using launcher::FlagValue;

constexpr std::array kFlags{
    Flag{.name = "json", .help = "Print the file: the events of the job."},
    Flag{.name = "html",
         .value = FlagValue::kFile,
         .value_name = "FILE",
         .help = "Write a page with the timeline of the ranks to this file.",
         .details = "The page needs no other file and no script."},
    Flag{.name = "report-dir",
         .value = FlagValue::kFolder,
         .value_name = "FOLDER",
         .default_value = "`~/.local/state/rankrun/reports`",
         .help = "The folder with the reports, as for `rankrun --report-dir`."},
    kHelpFlag};

struct Kept {
  std::string path;
  std::string text;
  KeptJob job;
};

Result<Kept> ReadReport(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kSystem, path + ": cannot be read"};
  Kept kept{.path = path, .text = {std::istreambuf_iterator<char>(file), {}}, .job = {}};
  auto job = ParseKeptJob(kept.text);
  if (!job) return std::move(job).error().In(path);
  kept.job = std::move(*job);
  return kept;
}

// Returns the newest report in the folder, or the newest of this job.
Result<Kept> FindReport(const std::string& folder, const std::string& run_id) {
  auto files = agent::ListReports(folder);
  const bool is_absent = !files && files.error().code == ErrorCode::kNotFound;
  if (!files && !is_absent) return std::move(files).error();
  const std::string prefix =
      agent::ReportFileName(run_id, 0).substr(0, agent::ReportFileName(run_id, 0).rfind('-') + 1);
  for (const agent::KeptEntry& file : files ? *files : std::vector<agent::KeptEntry>()) {
    if (!run_id.empty() && !file.name.starts_with(prefix)) continue;
    auto kept = ReadReport(folder + "/" + file.name);
    if (!kept || run_id.empty() || kept->job.run_id == run_id) return kept;
  }
  return Error{ErrorCode::kNotFound, folder + ": has no report" +
                                         (run_id.empty() ? "" : " on job " + run_id) +
                                         "; only jobs with a failure are kept, for a week"};
}

int RunReport(const CommandLine& line) {
  std::string folder = line.flags.Text("report-dir").value_or("");
  if (folder.empty()) folder = launcher::DefaultReportFolder(launcher::VariableOfProcess);
  if (folder.empty()) return Fail("HOME is not set; want --report-dir FOLDER", kExitUsage);
  if (line.flags.Has("json") && line.flags.Has("html")) {
    return Fail("--json and --html exclude each other; want one of them", kExitUsage);
  }
  auto kept = FindReport(folder, line.operands.empty() ? "" : line.operands[0]);
  if (!kept) return Fail(kept.error().message, kExitNo);
  if (line.flags.Has("json")) return Print(kept->text);
  auto path = line.flags.Text("html");
  if (!path) return Print(ReportTextOf(kept->job));
  auto written = WriteOutput(*path, ReportPage(kept->job));
  if (!written) return Fail("--html: " + written.error().message, kExitNo);
  // Standard output may be the page itself.
  std::error_code error;
  if (!std::filesystem::is_regular_file(*path, error)) return kExitDone;
  return Print(*path + ": the report on job " + kept->job.run_id + "\n");
}

constexpr Command kCommand = {
    .title = "rankctl report",
    .name = "report",
    .operands = "[JOB]",
    .least_operands = 0,
    .most_operands = 1,
    .help = "Print the report on the last job that had a failure, or on the job with this run id.",
    .details =
        "`rankrun` keeps the report on each job with a failed attempt for a week, on the "
        "node of rank 0. The command prints it as `rankrun` did.",
    .flags = kFlags,
    .run = RunReport};

}  // namespace

const Command& ReportCommand() { return kCommand; }

}  // namespace rankrun::cli
