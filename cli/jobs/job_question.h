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

// Asks the job, and its next agent if the agent has ended. Only for questions, because an agent may
// have carried out an order before its end. Errors: those of JobClient.
Result<JobAnswers> AskAgain(FoundJob& job, const agent::InspectRequest& request,
                            const JobClient::IsLast& is_last = {});

// Returns the workers of all nodes that answer. Names the others on standard error.
// Errors: those of JobClient.
Result<std::vector<agent::NodeStatus>> AskStatus(FoundJob& job);

// Returns lines on the nodes that have not answered. Pure.
std::vector<std::string> MissingOf(const JobAnswers& answers);
// Names them on standard error.
void NameMissing(const JobAnswers& answers);

// Returns a rank; nothing for another text.
std::optional<int> RankOf(const std::string& text);

}  // namespace rankrun::cli
