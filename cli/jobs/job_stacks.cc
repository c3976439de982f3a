#include "cli/jobs/job_stacks.h"

#include <algorithm>
#include <string>
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
  if (operands.has_range) return Fail("a range names ranks, not pids", kExitUsage);
  if (pids.empty()) return Fail("--pid needs a pid", kExitUsage);
  if (pids.front() == 0) return Fail("0 is no pid; want a positive number", kExitUsage);
  return PrintProcessStacks(pids, line.flags.Has("json"));
}

int StacksOfRanks(const CommandLine& line, const StackOperands& operands) {
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  auto ranks = RanksToAsk(operands, job->status.job, job->status.world_size);
  if (!ranks) {
    const bool are_many = ranks.error().code == ErrorCode::kInvalid;
    return Fail(ranks.error().message, are_many ? kExitUsage : kExitNo);
  }
  auto answers =
      AskAgain(*job, {.kind = InspectRequest::Kind::kStacks, .all_nodes = true, .ranks = *ranks});
  if (!answers) return FailJob(answers.error());
  const std::vector<StackGroup> groups = StackGroupsOf(*answers, *ranks);
  const int failed =
      Print(line.flags.Has("json") ? StackGroupsJson(groups) : StackGroupsText(groups));
  const bool are_complete = std::ranges::all_of(
      groups, [](const StackGroup& group) { return group.stacks.note.empty(); });
  return failed == kExitDone && !are_complete ? kExitNo : failed;
}

int RanksOfLargestJob() {
  int ranks = 0;
  for (const FoundJob& job : FindJobs().jobs) ranks = std::max(ranks, job.status.world_size);
  return ranks;
}

}  // namespace

int RunStacks(const CommandLine& line) {
  auto operands = ParseStackOperands(line.operands);
  if (!operands) return Fail(operands.error().message, kExitUsage);
  const bool has_job = line.flags.Has("job");
  if (line.flags.Has("pid")) {
    if (has_job) return Fail("--job and --pid exclude each other", kExitUsage);
    return StacksOfProcesses(line, *operands);
  }
  if (has_job || operands->numbers.empty()) return StacksOfRanks(line, *operands);
  auto are_ranks = AreRanks(*operands, RanksOfLargestJob());
  if (!are_ranks) return Fail(are_ranks.error().message, kExitUsage);
  return *are_ranks ? StacksOfRanks(line, *operands) : StacksOfProcesses(line, *operands);
}

}  // namespace rankrun::cli
