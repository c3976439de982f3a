#include "cli/jobs/job_finder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "agent/inspect/socket_folder.h"
#include "base/parse_number.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using agent::NodeStatus;

Result<FoundJob> Identify(JobClient client) {
  auto answers = client.Ask({.kind = InspectRequest::Kind::kJob});
  if (!answers) return std::move(answers).error();
  if (answers->nodes.empty()) return Error{ErrorCode::kProtocol, "the agent has not answered"};
  auto status = agent::DecodeStatus(answers->nodes[0].json);
  if (!status) return std::move(status).error();
  return FoundJob{std::move(client), *std::move(status)};
}

void Search(const std::string& folder, uid_t user, FoundJobs& found) {
  auto safe = agent::CheckSocketFolder(folder, user);
  if (!safe) {
    if (safe.error().code == ErrorCode::kInvalid) found.problems.push_back(safe.error().message);
    return;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    auto pid = agent::AgentOfSocket(entry.path().filename().string());
    if (!pid) continue;
    auto client = JobClient::Connect(entry.path(), *pid);
    if (!client && client.error().code == ErrorCode::kNotFound) {
      unlink(entry.path().c_str());  // its agent has died
      continue;
    }
    auto job = client ? Identify(*std::move(client)) : std::move(client).error();
    if (job) {
      found.jobs.push_back(*std::move(job));
    } else if (job.error().code != ErrorCode::kPeerLost) {
      found.problems.push_back(job.error().message);
    }
  }
}

FoundJobs FindJobsOf(uid_t user) {
  const char* runtime_dir = getenv("XDG_RUNTIME_DIR");
  FoundJobs found;
  for (const std::string& folder :
       agent::SocketFolders(runtime_dir != nullptr ? runtime_dir : "", user)) {
    Search(folder, user, found);
  }
  std::ranges::sort(found.jobs, [](const FoundJob& a, const FoundJob& b) {
    return a.status.seconds > b.status.seconds;
  });
  return found;
}

constexpr size_t kMinPrefix = 4;  // of a job's id

bool IsMeant(const NodeStatus& status, const std::string& wanted) {
  if (wanted.empty() || status.job == wanted) return true;
  if (wanted.size() >= kMinPrefix && status.job.starts_with(wanted)) return true;
  auto pid = ParseNumber<pid_t>(wanted);
  return pid && (*pid == status.agent || *pid == status.guardian);
}

// Returns the user of a process; nothing if there is none.
std::optional<uid_t> UserOf(const std::string& pid) {
  struct stat status {};
  if (!ParseNumber<pid_t>(pid) || stat(("/proc/" + pid).c_str(), &status) != 0) return {};
  return status.st_uid;
}

std::string ListOf(const std::vector<FoundJob>& jobs) {
  std::string list;
  for (const FoundJob& job : jobs) {
    list += (list.empty() ? "" : ", ") + job.status.job + " (pid " +
            std::to_string(job.status.guardian) + ")";
  }
  return list;
}

// Agents of one job on this host; any of them will do.
bool AreOneJob(const std::vector<FoundJob>& jobs) {
  return std::ranges::all_of(jobs, [&](const FoundJob& job) {
    return job.status.job == jobs[0].status.job && job.status.nodes > 1;
  });
}

}  // namespace

FoundJobs FindJobs() { return FindJobsOf(geteuid()); }

Result<FoundJob> FindJob(const std::string& wanted) {
  uid_t user = geteuid();
  auto owner = UserOf(wanted);
  if (owner && *owner != user && user == 0) user = *owner;
  FoundJobs found = FindJobsOf(user);
  std::erase_if(found.jobs, [&](const FoundJob& job) { return !IsMeant(job.status, wanted); });
  if (found.jobs.size() > 1 && !AreOneJob(found.jobs)) {
    return Error{ErrorCode::kInvalid,
                 "several jobs run: " + ListOf(found.jobs) + "; choose one with --job ID or PID"};
  }
  if (!found.jobs.empty()) return std::move(found.jobs[0]);
  if (!found.problems.empty()) return Error{ErrorCode::kInvalid, found.problems[0]};
  if (owner && *owner != user) {
    return Error{ErrorCode::kInvalid, "process " + wanted + " belongs to user " +
                                          std::to_string(*owner) +
                                          "; only that user and root can inspect its job"};
  }
  std::string which =
      wanted.empty() ? "no job of this user runs" : "no job \"" + wanted + "\" runs";
  return Error{ErrorCode::kNotFound, which + " on this host; rankctl ps lists all"};
}

}  // namespace rankrun::cli
