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
};

struct FoundJobs {
  std::vector<FoundJob> jobs;         // sorted by their start
  std::vector<std::string> problems;  // agents that do not answer, folders that cannot be used
};

// Returns the jobs of this user on this host. Removes sockets whose agents have died.
FoundJobs FindJobs();

// Returns the job that `wanted` names by its id or by the pid of an agent or a guardian, or the
// only one if it is empty.
// Errors: kNotFound, kInvalid if there are several, those of JobClient.
Result<FoundJob> FindJob(const std::string& wanted);

}  // namespace rankrun::cli
