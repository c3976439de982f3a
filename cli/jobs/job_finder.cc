#include "cli/jobs/job_finder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include "agent/inspect/socket_folder.h"
#include "base/parse_number.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using agent::NodeStatus;

Result<FoundJob> Identify(JobClient client, uid_t user) {
  auto answers = client.Ask({.kind = InspectRequest::Kind::kJob});
  if (!answers) return std::move(answers).error();
  if (answers->nodes.empty()) return Error{ErrorCode::kProtocol, "the agent has not answered"};
  auto status = agent::DecodeStatus(answers->nodes[0].json);
  if (!status) return std::move(status).error();
  return FoundJob{std::move(client), *std::move(status), user};
}

// The time within which an agent gives a new socket its last name.
constexpr std::time_t kMaxNamingSeconds = 10;

bool BelongsToAnother(const std::string& folder, uid_t user) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && status.st_uid != user;
}

// Removes a socket whose agent has died before it named it.
void RemoveUnnamed(const std::string& path) {
  struct stat status {};
  bool is_old =
      lstat(path.c_str(), &status) == 0 && std::time(nullptr) - status.st_mtime > kMaxNamingSeconds;
  if (is_old && S_ISSOCK(status.st_mode)) unlink(path.c_str());
}

void Search(const std::string& folder, uid_t user, FoundJobs& found) {
  using Kind = FindProblem::Kind;
  auto safe = agent::CheckSocketFolder(folder, user);
  if (!safe) {
    if (safe.error().code != ErrorCode::kInvalid) return;
    found.problems.push_back({BelongsToAnother(folder, user) ? Kind::kOthersFolder : Kind::kFolder,
                              safe.error().message});
    return;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with('~')) RemoveUnnamed(entry.path());
    auto pid = agent::AgentOfSocket(name);
    if (!pid) continue;
    auto client = JobClient::Connect(entry.path(), *pid);
    if (!client && client.error().code == ErrorCode::kNotFound) {
      unlink(entry.path().c_str());  // its agent has died
      continue;
    }
    auto job = client ? Identify(*std::move(client), user) : std::move(client).error();
    if (job) {
      found.jobs.push_back(*std::move(job));
    } else if (job.error().code != ErrorCode::kPeerLost) {
      bool is_silent = job.error().code == ErrorCode::kTimeout;
      found.problems.push_back(
          {is_silent ? Kind::kSilent : Kind::kOther, job.error().message, name});
    }
  }
}

FoundJobs FindJobsOf(uid_t user) {
  auto value_of = [](const char* name) {
    const char* value = getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  agent::SocketVariables variables{.socket_dir = value_of("RANKRUN_SOCKET_DIR"),
                                   .runtime_dir = value_of("XDG_RUNTIME_DIR")};
  FoundJobs found;
  for (const std::string& folder : agent::SocketFolders(variables, user)) {
    Search(folder, user, found);
  }
  const std::string prefix = agent::SpareFolderPrefix(variables, user);
  for (const std::string& folder : agent::FindSpareFolders(prefix, user)) {
    Search(folder, user, found);
  }
  std::ranges::sort(found.jobs, [](const FoundJob& a, const FoundJob& b) {
    return a.status.seconds > b.status.seconds;
  });
  return found;
}

constexpr size_t kMinPrefix = 4;  // of a job's id

// Keeps the jobs that `wanted` names best.
JobMatch KeepBest(std::vector<FoundJob>& jobs, const std::string& wanted) {
  JobMatch best = JobMatch::kNone;
  for (const FoundJob& job : jobs) best = std::max(best, MatchOf(job.status, wanted));
  std::erase_if(jobs, [&](const FoundJob& job) {
    JobMatch match = MatchOf(job.status, wanted);
    return match == JobMatch::kNone || match < best;
  });
  return best;
}

// Returns an agent that does not answer and that may have another job than `job`.
const FindProblem* OtherSilentAgent(const FoundJobs& found, const NodeStatus& job) {
  auto other = std::ranges::find_if(found.problems, [&](const FindProblem& problem) {
    if (problem.kind != FindProblem::Kind::kSilent) return false;
    auto pid = agent::AgentOfSocket(problem.socket);
    return !pid || problem.socket != agent::SocketName(job.job, *pid);
  });
  return other != found.problems.end() ? &*other : nullptr;
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

// How long the next agent of a job needs to open its socket.
constexpr std::chrono::milliseconds kNextAgent{2'000};
constexpr std::chrono::milliseconds kLookInterval{50};

}  // namespace

JobMatch MatchOf(const NodeStatus& status, const std::string& wanted) {
  if (wanted.empty()) return JobMatch::kPrefix;
  if (status.job == wanted) return JobMatch::kId;
  auto pid = ParseNumber<pid_t>(wanted);
  if (pid && (*pid == status.agent || *pid == status.guardian)) return JobMatch::kPid;
  bool is_prefix = wanted.size() >= kMinPrefix && status.job.starts_with(wanted);
  return is_prefix ? JobMatch::kPrefix : JobMatch::kNone;
}

bool FindAgain(FoundJob& job) {
  TimePoint deadline = std::chrono::steady_clock::now() + kNextAgent;
  while (std::chrono::steady_clock::now() < deadline) {
    bool may_go_on = std::filesystem::exists("/proc/" + std::to_string(job.status.guardian));
    if (!may_go_on) return false;
    for (FoundJob& other : FindJobsOf(job.user).jobs) {
      bool is_next =
          other.status.job == job.status.job && other.status.guardian == job.status.guardian;
      if (!is_next) continue;
      job = std::move(other);
      return true;
    }
    std::this_thread::sleep_for(kLookInterval);
  }
  return false;
}

FoundJobs FindJobs() { return FindJobsOf(geteuid()); }

Result<FoundJob> FindJob(const std::string& wanted) {
  uid_t user = geteuid();
  auto owner = UserOf(wanted);
  if (owner && *owner != user && user == 0) user = *owner;
  FoundJobs found = FindJobsOf(user);
  JobMatch best = KeepBest(found.jobs, wanted);
  if (found.jobs.size() > 1 && !AreOneJob(found.jobs)) {
    return Error{ErrorCode::kInvalid,
                 "several jobs run: " + ListOf(found.jobs) + "; choose one with --job ID or PID"};
  }
  if (!found.jobs.empty() && best == JobMatch::kPrefix) {
    if (const FindProblem* other = OtherSilentAgent(found, found.jobs[0].status)) {
      return Error{ErrorCode::kInvalid, other->message + "; if you mean the job " +
                                            found.jobs[0].status.job + ", choose it with --job"};
    }
  }
  if (!found.jobs.empty()) return std::move(found.jobs[0]);
  if (!found.problems.empty()) return Error{ErrorCode::kInvalid, found.problems[0].message};
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
