#include "cli/jobs/job_views.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "cli/jobs/job_question.h"
#include "cli/jobs/job_stacks.h"
#include "cli/jobs/job_text.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using agent::NodeStatus;
using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kRefresh{1};
// Between the two looks of `why`: long enough to see which ranks use the processor.
constexpr std::chrono::milliseconds kLookInterval{20};
constexpr size_t kPlainWidth = 200;  // without a terminal

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct TerminalSize {
  size_t columns = kPlainWidth;
  size_t lines = SIZE_MAX;
};

TerminalSize SizeOfTerminal() {
  winsize size{};
  bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? TerminalSize{size.ws_col, std::max<size_t>(size.ws_row, 4)} : TerminalSize{};
}

// Returns the answers as the agents sent them, an array of objects.
std::string RawJson(const std::vector<NodeAnswer>& answers) {
  std::string text;
  for (const NodeAnswer& answer : answers) text += (text.empty() ? "" : ",") + answer.json;
  return "[" + text + "]\n";
}

int PrintRaw(FoundJob& job) {
  auto answers = AskAgain(job, {.kind = InspectRequest::Kind::kStatus, .all_nodes = true});
  if (!answers) return FailJob(answers.error());
  NameMissing(*answers);
  return Print(RawJson(answers->nodes));
}

// Keeps the lines that fit a screen.
std::string Fitting(const std::string& text, size_t lines) {
  size_t end = 0;
  for (size_t i = 1; i < lines && end != std::string::npos; ++i) {
    end = text.find('\n', end);
    if (end != std::string::npos) end += 1;
  }
  if (end == std::string::npos || end >= text.size()) return text;
  auto hidden = std::ranges::count(text.begin() + static_cast<ptrdiff_t>(end), text.end(), '\n');
  return text.substr(0, end) + "... and " + std::to_string(hidden) +
         " more lines: rankctl status --once shows all";
}

// Adds the stacks of workers that show nothing else, as those of PyTorch without librankrun. Others
// may read them now, or this host may not: then they stay unknown.
void AddStacks(FoundJob& job, std::vector<NodeStatus>& nodes) {
  std::vector<int> ranks = RanksThatShowNothing(nodes);
  if (ranks.empty()) return;
  if (ranks.size() > agent::kMaxStacksRanks) ranks.resize(agent::kMaxStacksRanks);
  auto groups = AskStacks(job, ranks);
  if (!groups) return;
  std::map<int, agent::StackDigest> digests;
  for (const agent::StackGroup& group : *groups) {
    const agent::StackDigest digest = DigestOf(group.stacks);
    for (const agent::RankProcess& process : group.ranks) digests[process.rank] = digest;
  }
  for (NodeStatus& node : nodes) {
    for (agent::WorkerStatus& worker : node.workers) {
      auto found = digests.find(worker.sample.global_rank);
      if (found != digests.end()) worker.stacks = found->second;
    }
  }
}

// Repaints the table each second until the job or rankctl ends.
int WatchStatus(FoundJob& job) {
  CpuTimes before;
  while (true) {
    auto nodes = AskStatus(job);
    if (!nodes)
      return nodes.error().code == ErrorCode::kPeerLost ? Print("the job is over\n")
                                                        : FailJob(nodes.error());
    TerminalSize size = SizeOfTerminal();
    double now = Now();
    std::string text = StatusText(*nodes, before, now, size.columns);
    if (int failed = Redraw(Fitting(text, size.lines))) return failed;
    before = CpuTimesOf(*nodes, now);
    std::this_thread::sleep_for(kRefresh);
  }
}

}  // namespace

int RunPs(const CommandLine& line) {
  FoundJobs found = FindJobs();
  int code = kExitDone;
  for (const FindProblem& problem : found.problems) {
    Fail(problem.message, kExitNo);
    // The user of this job can do nothing about the folder of another one.
    if (problem.kind != FindProblem::Kind::kOthersFolder) code = kExitNo;
  }
  std::vector<NodeStatus> jobs;
  for (const FoundJob& job : found.jobs) jobs.push_back(job.status);
  if (line.flags.Has("json")) {
    std::string text;
    for (const NodeStatus& job : jobs) {
      text += (text.empty() ? "" : ",") + EncodeStatus(job, agent::kMaxAnswerBytes);
    }
    if (int failed = Print("[" + text + "]\n")) return failed;
    return code;
  }
  if (jobs.empty() && code == kExitDone) return Print("no job of this user runs on this host\n");
  if (int failed = Print(JobsText(jobs))) return failed;
  return code;
}

int RunStatus(const CommandLine& line) {
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  if (line.flags.Has("json")) return PrintRaw(*job);
  bool is_live = isatty(STDOUT_FILENO) != 0 && !line.flags.Has("once");
  if (is_live) return WatchStatus(*job);
  auto nodes = AskStatus(*job);
  if (!nodes) return FailJob(nodes.error());
  return Print(StatusText(*std::move(nodes), {}, Now(), SizeOfTerminal().columns));
}

int RunWhy(const CommandLine& line) {
  int rank = -1;
  if (!line.operands.empty()) {
    auto typed = RankOf(line.operands[0]);
    if (!typed) return Fail("want a rank, such as 3, not \"" + line.operands[0] + "\"", kExitUsage);
    rank = *typed;
  }
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  double began = Now();
  auto first = AskStatus(*job);
  if (!first) return FailJob(first.error());
  std::this_thread::sleep_for(kLookInterval);
  auto second = AskStatus(*job);
  if (!second) return FailJob(second.error());
  double apart = Now() - began;
  bool is_known = rank < 0 || std::ranges::any_of(*second, [rank](const NodeStatus& node) {
                    return std::ranges::any_of(node.workers, [rank](const auto& worker) {
                      return worker.sample.global_rank == rank;
                    });
                  });
  if (!is_known) return Fail("no rank " + std::to_string(rank) + " runs in this job", kExitNo);
  if (!ShowsWaits(*first, *second, apart)) AddStacks(*job, *second);
  std::string text = WhyText(*first, *second, apart, rank);
  if (!line.flags.Has("json")) return Print(text);
  Json lines = Json::array();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return Print(lines.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace rankrun::cli
