#include "agent/report/report_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/log.h"
#include "base/own_file.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

constexpr size_t kMaxRunIdBytes = 100;
constexpr size_t kMaxReports = 100;
constexpr std::string_view kDraftSuffix = ".tmp";
constexpr std::chrono::hours kDraftAge{1};  // no write takes so long

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

system_clock::time_point ChangeTimeOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  return system_clock::time_point(std::chrono::seconds(status.st_mtim.tv_sec) +
                                  std::chrono::duration_cast<system_clock::duration>(
                                      std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
}

bool IsDraft(std::string_view path) {
  const size_t suffix = path.rfind(kReportSuffix);
  if (suffix == std::string_view::npos || !path.ends_with(kDraftSuffix)) return false;
  return path.find('/', suffix) == std::string_view::npos &&
         path.size() > suffix + kReportSuffix.size();
}

// Removes drafts of agents that were killed while they wrote.
void RemoveOldDrafts(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (!IsDraft(path)) continue;
    const auto changed = ChangeTimeOf(path);
    const bool is_there = changed != system_clock::time_point();
    if (is_there && system_clock::now() - changed > kDraftAge) unlink(path.c_str());
  }
}

// Removes reports that are too old or too many. The next write removes those that cannot be
// listed or removed now.
void CleanUp(const std::string& folder) {
  RemoveOldDrafts(folder);
  auto reports = ListReports(folder);
  if (!reports) return LogInfo(reports.error().message);
  for (const std::string& old :
       EntriesToRemove(*std::move(reports), system_clock::now(), kMaxReports)) {
    unlink((folder + "/" + old).c_str());
  }
}

}  // namespace

std::string ReportFileName(std::string_view run_id, uint64_t node_id) {
  std::string name(run_id.substr(0, kMaxRunIdBytes));
  std::ranges::replace_if(
      name, [](char c) { return !IsPlain(c); }, '_');
  if (name.empty() || name.starts_with('.')) name.insert(0, "_");
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[node_id >> shift & 0xF];
  return name + "-" + id + std::string(kReportSuffix);
}

Result<std::vector<KeptEntry>> ListReports(const std::string& folder) {
  std::vector<KeptEntry> reports;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.ends_with(kReportSuffix)) reports.push_back({name, ChangeTimeOf(entry->path())});
  }
  if (error == std::errc::no_such_file_or_directory) {
    return Error{ErrorCode::kNotFound, folder + ": there is no such folder"};
  }
  if (error) return SystemError("read the folder " + folder, error.value());
  std::ranges::sort(reports, std::greater{}, &KeptEntry::changed);
  return reports;
}

Result<void> MakeReportFolder(const std::string& folder) { return MakeOwnFolders(folder, 0700); }

Result<void> WriteReport(const std::string& folder, const std::string& name,
                         const std::string& text) {
  if (auto written = ReplaceFile(folder + "/" + name, text); !written) return written;
  CleanUp(folder);
  return {};
}

}  // namespace rankrun::agent
