#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/inspect/node_status.h"
#include "cli/command.h"
#include "cli/jobs/job_finder.h"

namespace rankrun::cli {

// Steps that the commands about jobs share.

// Returns the job that --job names, or the only one.
Result<FoundJob> JobOf(const CommandLine& line);

// Prints the error and returns the exit code of a command that got it.
int FailJob(const Error& error);

// Returns the workers of all nodes that answer. Names the others on standard error.
// Errors: those of JobClient.
Result<std::vector<agent::NodeStatus>> AskStatus(JobClient& client);

// Names on standard error the nodes that have not answered.
void NameMissing(const JobAnswers& answers);

// Returns a rank; nothing for another text.
std::optional<int> RankOf(const std::string& text);

}  // namespace rankrun::cli
