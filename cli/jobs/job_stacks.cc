#include "cli/jobs/job_stacks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/jobs/job_question.h"
#include "cli/jobs/stacks_text.h"
#include "cli/output.h"
#include "cli/process_stacks.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using agent::StackGroup;

int StacksOfProcesses(const CommandLine& line, const StackOperands& operands) {
  const std::vector<pid_t> pids(operands.numbers.begin(), operands.numbers.end());
  if (pids.empty()) return Fail("--pid needs a pid", kExitUsage);
  if (pids.front() == 0) return Fail("0 is no pid; want a positive number", kExitUsage);
  return PrintProcessStacks(pids, line.flags.Has("json"));
}

int StacksOfRanks(const CommandLine& line, const StackOperands& operands) {
  auto job = JobOf(line);
  if (!job) {
    const bool may_be_pids = !line.flags.Has("job") && !operands.numbers.empty();
    return Fail(job.error().message + (may_be_pids ? "; --pid takes pids" : ""), kExitNo);
  }
  auto ranks = RanksToAsk(operands, job->status.job, job->status.world_size);
  if (!ranks) {
    const bool are_many = ranks.error().code == ErrorCode::kInvalid;
    return Fail(ranks.error().message, are_many ? kExitUsage : kExitNo);
  }
  auto groups = AskStacks(*job, *ranks);
  if (!groups) return FailJob(groups.error());
  const int failed =
      Print(line.flags.Has("json") ? StackGroupsJson(*groups) : StackGroupsText(*groups));
  const bool are_complete = std::ranges::all_of(
      *groups, [](const StackGroup& group) { return group.stacks.note.empty(); });
  return failed == kExitDone && !are_complete ? kExitNo : failed;
}

// Returns whether the numbers are ranks. An agent that does not answer may have these ranks, so
// that its silence is reported, and no process is taken for one of them.
Result<bool> MayBeRanks(const StackOperands& operands) {
  const FoundJobs found = FindJobs();
  int ranks = 0;  // of the largest job
  for (const FoundJob& job : found.jobs) ranks = std::max(ranks, job.status.world_size);
  auto are_ranks = AreRanks(operands, ranks);
  if (!are_ranks) return std::move(are_ranks).error();
  return *are_ranks || std::ranges::any_of(found.problems, [](const FindProblem& problem) {
    return problem.kind == FindProblem::Kind::kSilent;
  });
}

}  // namespace

Result<std::vector<StackGroup>> AskStacks(FoundJob& job, const std::vector<int>& ranks) {
  // Nodes without any of the ranks are not waited for.
  std::set<int> asked(ranks.begin(), ranks.end());
  auto have_all = [open = std::move(asked)](const NodeAnswer& answer) mutable {
    for (int rank : RanksIn(answer)) open.erase(rank);
    return open.empty();
  };
  auto answers = AskAgain(
      job, {.kind = InspectRequest::Kind::kStacks, .all_nodes = true, .ranks = ranks}, have_all);
  if (!answers) return std::move(answers).error();
  return StackGroupsOf(*answers, ranks, /*names_nodes=*/job.status.nodes > 1);
}

int RunStacks(const CommandLine& line) {
  const bool are_pids = line.flags.Has("pid");
  auto operands = ParseStackOperands(line.operands, are_pids);
  if (!operands) return Fail(operands.error().message, kExitUsage);
  const bool has_job = line.flags.Has("job");
  if (are_pids) {
    if (has_job) return Fail("--job and --pid exclude each other", kExitUsage);
    return StacksOfProcesses(line, *operands);
  }
  if (has_job || operands->numbers.empty()) return StacksOfRanks(line, *operands);
  auto are_ranks = MayBeRanks(*operands);
  if (!are_ranks) return Fail(are_ranks.error().message, kExitUsage);
  return *are_ranks ? StacksOfRanks(line, *operands) : StacksOfProcesses(line, *operands);
}

}  // namespace rankrun::cli
