#pragma once

#include <string>
#include <vector>

#include "agent/inspect/node_status.h"
#include "base/result.h"
#include "cli/jobs/job_client.h"

namespace rankrun::cli {

// A job on this host, by one of its agents.
struct FoundJob {
  JobClient client;
  agent::NodeStatus status;  // without workers
  uid_t user;                // whose sockets have it
};

// Why a job may be missing.
struct FindProblem {
  enum class Kind {
    kFolder,        // of this user, that cannot be used
    kOthersFolder,  // of another user, where a folder of this one may be
    kSilent,        // an agent that does not answer
    kOther,
  };
  Kind kind = Kind::kOther;
  std::string message;
  std::string socket{};  // name of the agent's socket; empty: of a folder
};

struct FoundJobs {
  std::vector<FoundJob> jobs;  // sorted by their start
  std::vector<FindProblem> problems;
};

// How well `wanted` names a job: by its id, else by the pid of an agent or a guardian, else by the
// beginning of its id. The empty text names each job, though weakly. Pure.
enum class JobMatch { kNone, kPrefix, kPid, kId };
JobMatch MatchOf(const agent::NodeStatus& status, const std::string& wanted);

// Returns the jobs of this user on this host. Removes sockets whose agents have died.
FoundJobs FindJobs();

// Returns the job that `wanted` names best, or the only one if it is empty.
// Errors: kNotFound; kInvalid if there are several, or if an agent that does not answer may be
// meant as well; those of JobClient.
Result<FoundJob> FindJob(const std::string& wanted);

// Connects to another agent of a job whose agent has ended: the next one follows within about 2 s.
// Returns false if there is none, because the job is over.
bool FindAgain(FoundJob& job);

}  // namespace rankrun::cli
