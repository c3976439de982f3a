#include "launcher/show/report.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/report/last_error.h"
#include "agent/report/left_out.h"
#include "agent/report/logged_error.h"
#include "agent/report/named_rank.h"
#include "agent/report/verdict.h"
#include "agent/stacks/worker_stacks.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/roll_call.h"
#include "launcher/show/hints.h"

namespace rankrun::launcher {
namespace {

using agent::AttemptRecord;
using agent::WorkerRecord;

constexpr size_t kShownLines = 20;
constexpr size_t kMaxLine = 300;   // in characters
constexpr int kShownFailures = 3;  // with their last lines, beside the cause

std::string LastLinesOf(const std::string& stream, const std::string& tail,
                        const std::string& file) {
  const agent::ShownLines shown = agent::LastLinesWithException(tail, kShownLines);
  if (shown.lines.empty()) return "";
  std::string text = "    last lines of its standard " + stream + ":\n";
  for (const std::string& line : shown.lines) text += "    | " + OneLine(line, kMaxLine) + "\n";
  if (shown.left_out > 0) {
    text += "    not shown: " + std::to_string(shown.left_out) +
            (shown.left_out == 1 ? " line" : " lines") + " after the exception\n";
  }
  if (!file.empty()) text += "    more: " + file + "\n";
  return text;
}

// Returns "; were in AllReduce #12 (16 x float32, sum) of world for 3.2 s": the
// common activity of `workers`, and its longest duration.
std::string ActivityText(const std::vector<const WorkerRecord*>& workers) {
  if (workers[0]->activity.what.empty()) return "";
  Duration longest{};
  for (const WorkerRecord* worker : workers) longest = std::max(longest, worker->activity.lasted);
  return (workers.size() > 1 ? "; were " : "; was ") + workers[0]->activity.what + " for " +
         FormatSeconds(longest);
}

std::string ActivityText(const WorkerRecord& worker) { return ActivityText(std::vector{&worker}); }

// Returns "AllReduce #11, AllReduce #12 (under way) of world, Send (failed) of pair".
std::string OperationsText(const std::vector<agent::LastOperation>& operations) {
  std::string text;
  for (size_t i = 0; i < operations.size(); ++i) {
    const agent::LastOperation& operation = operations[i];
    text += (i == 0 ? "" : ", ") + operation.what.substr(0, operation.what.find(" ("));
    if (operation.is_under_way) text += " (under way)";
    if (operation.has_failed) text += " (failed)";
    const bool goes_on = i + 1 < operations.size() && operations[i + 1].group == operation.group;
    if (!goes_on) text += " of " + operation.group;
  }
  return text;
}

// Returns a line with the last operations of a worker, or nothing.
std::string LastOperationsText(const WorkerRecord& worker, const std::string& of) {
  if (worker.last_operations.empty()) return "";
  const agent::LastOperation& last = worker.last_operations.back();
  std::string text = "last operations" + of + ": " + OperationsText(worker.last_operations);
  if (!last.is_under_way) text += "; none in the last " + FormatSeconds(last.ago);
  return "    " + OneLine(text, kMaxLine) + "\n";
}

std::string OperationsFileText(const WorkerRecord& worker) {
  if (worker.operations_file.empty()) return "";
  return "    all operations: " + worker.operations_file + "\n";
}

// Returns the stack before our SIGKILL, or nothing.
std::string StackText(const WorkerRecord& worker, const std::string& of) {
  constexpr size_t kColumns = 100;
  const std::string label = "    stack" + of + ": ";
  const std::string stack = agent::StackLine(worker.stacks, kColumns, label.size(), "      ");
  if (stack.empty()) return "";
  const std::string& file = worker.stacks.file;
  return label + stack + "\n" + (file.empty() ? "" : "    all stacks: " + file + "\n");
}

std::string EvidenceText(const WorkerRecord& worker) {
  std::string text;
  if (worker.exception) {
    for (const std::string& line : agent::LastLines(*worker.exception, kShownLines)) {
      text += "    exception: " + OneLine(line, kMaxLine) + "\n";
    }
  }
  if (std::string error = agent::SanitizerError(worker.stderr_tail); !error.empty()) {
    text += "    error: " + OneLine(error, kMaxLine) + "\n";
  }
  std::string lines = LastLinesOf("error", worker.stderr_tail, worker.stderr_file);
  if (lines.empty()) lines = LastLinesOf("output", worker.stdout_tail, worker.stdout_file);
  return text + lines;
}

// Returns the error that a worker has logged before the one with which it ended, if it ended as
// others did, or nothing.
std::string LoggedText(const AttemptRecord& record) {
  const WorkerRecord& cause = record.workers[record.cause];
  const agent::Ending ending = agent::EndingOf(cause);
  const auto ended_alike = [&](const WorkerRecord& worker) {
    return &worker != &cause && ending.error != 0 && agent::EndingOf(worker).error == ending.error;
  };
  const bool is_victim = ending.kind == agent::EndKind::kLostPeer;
  if (!is_victim && std::ranges::none_of(record.workers, ended_alike)) return "";
  const std::string line = agent::LoggedError(agent::OutputOfErrors(cause));
  return line.empty() ? "" : "    it has logged before: " + OneLine(line, kMaxLine) + "\n";
}

// Returns "ranks 0, 1, 3 on node-2" or "rank 2 (pid 102)".
std::string RanksText(const std::vector<const WorkerRecord*>& workers) {
  std::vector<int> ranks;
  for (const WorkerRecord* worker : workers) ranks.push_back(worker->global_rank);
  std::string text = (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks);
  const std::string& node = workers[0]->node;
  bool same_node = std::ranges::all_of(
      workers, [&](const WorkerRecord* worker) { return worker->node == node; });
  if (same_node && !node.empty()) text += " on " + node;
  if (workers.size() > 1 || workers[0]->pid == 0) return text;
  return text + " (pid " + std::to_string(workers[0]->pid) + ")";
}

// Returns how a worker ended whose failure is a consequence of the cause.
std::string EndText(const WorkerRecord& worker, bool several) {
  if (agent::EndingOf(worker).kind == agent::EndKind::kTimedOut) {
    return "timed out, " + HowItEnded(worker);
  }
  if (agent::EndingOf(worker).kind != agent::EndKind::kLostPeer) return HowItEnded(worker);
  const int named = agent::EndingOf(worker).lost_rank;
  if (named >= 0) return "because of rank " + std::to_string(named) + ": " + HowItEnded(worker);
  std::string how = several ? "lost their peer, " : "lost its peer, ";
  bool stopped = worker.exit && worker.exit->signaled && worker.exit->value == worker.sent_signal;
  if (!stopped) return how + HowItEnded(worker);
  return how + (several ? "then were" : "then was") + " stopped by rankrun (" +
         SignalName(worker.sent_signal) + ")";
}

// Returns the place of output that the report does not show: the file of one
// worker, or the folder of the attempt.
std::string FilesText(const std::vector<const WorkerRecord*>& workers) {
  std::vector<std::string> files;
  for (const WorkerRecord* worker : workers) {
    bool has_output = !worker->stderr_tail.empty() && !worker->stderr_file.empty();
    if (has_output) files.push_back(worker->stderr_file);
  }
  if (files.empty()) return "";
  if (files.size() == 1) return "    more: " + files[0] + "\n";
  auto folder_of = [](const std::string& file) {
    return std::filesystem::path(file).parent_path();
  };
  auto folder = folder_of(files[0]);
  if (folder_of(files[1]) != folder) folder = folder.parent_path();  // each rank has its own
  return "    more: " + folder.string() + "\n";
}

// Returns the stack of the first worker that has one.
std::string GroupStackText(const std::vector<const WorkerRecord*>& alike) {
  auto shown = std::ranges::find_if(
      alike, [](const WorkerRecord* worker) { return worker->stacks != agent::WorkerStacks{}; });
  if (shown == alike.end()) return "";
  const bool is_only = alike.size() == 1;
  return StackText(**shown, is_only ? "" : " of rank " + std::to_string((*shown)->global_rank));
}

// Returns one line for each group of workers that ended alike. Adds the last operations of one
// worker.
std::string GroupsText(std::vector<const WorkerRecord*> left) {
  std::string text;
  std::string operations;
  while (!left.empty()) {
    std::string how = EndText(*left[0], false);
    auto others = std::stable_partition(left.begin(), left.end(), [&](const WorkerRecord* worker) {
      return EndText(*worker, false) == how && worker->activity.what == left[0]->activity.what;
    });
    std::vector<const WorkerRecord*> alike(left.begin(), others);
    text += "  then: " + RanksText(alike) + ": " + EndText(*left[0], alike.size() > 1) +
            ActivityText(alike) + "\n";
    auto shown = std::ranges::find_if(
        alike, [](const WorkerRecord* worker) { return !worker->last_operations.empty(); });
    if (operations.empty() && shown != alike.end()) {
      operations = LastOperationsText(
          **shown, alike.size() > 1 ? " of rank " + std::to_string((*shown)->global_rank) : "");
      text += operations;
    }
    text += GroupStackText(alike);
    left.erase(left.begin(), others);
  }
  return text;
}

// Returns the line in which a worker names `rank`; nothing if it does not.
std::string LineThatNames(const WorkerRecord& worker, int rank) {
  if (agent::EndingOf(worker).lost_rank != rank) return "";
  for (std::string& line : agent::LastLines(agent::OutputOfErrors(worker), kShownLines)) {
    if (agent::NamedRankIn(line) == rank) return std::move(line);
  }
  return "";
}

// Returns what another worker says about a cause that did not fail by itself, best with its
// name, or nothing.
std::string AccusationText(const AttemptRecord& record) {
  const WorkerRecord& cause = record.workers[record.cause];
  if (agent::FailedByItself(EndKindOf(cause))) return "";
  for (const WorkerRecord& worker : record.workers) {
    if (&worker == &cause) continue;
    std::string line = LineThatNames(worker, cause.global_rank);
    const agent::EndKind kind = agent::EndingOf(worker).kind;
    const bool is_victim = kind == agent::EndKind::kLostPeer || kind == agent::EndKind::kTimedOut;
    if (line.empty() && is_victim) {
      line = agent::FindLastError(agent::OutputOfErrors(worker)).text;
      line.resize(std::min(line.find('\n'), line.size()));
    }
    if (line.empty()) continue;
    const std::string who = "    rank " + std::to_string(worker.global_rank) + " says: ";
    return who + OneLine(line, kMaxLine) + "\n";
  }
  return "";
}

std::string HintText(const WorkerRecord& cause) {
  const std::string hint = HintFor(cause);
  return hint.empty() ? "" : "    hint: " + hint + "\n";
}

std::string LeftOutText(const AttemptRecord& record) {
  std::string text;
  for (const agent::LeftOut& left_out : record.left_out) {
    WorkerRecord like;
    like.exit = left_out.exit;
    like.sent_signal = left_out.sent_signal;
    like.ending = agent::Ending{.kind = left_out.kind};
    std::string how = EndText(like, left_out.count > 1);
    if (left_out.kind == agent::EndKind::kNotStarted) how = "could not be started";
    if (left_out.is_mixed) how = "ended in several ways";
    text += "  then: " + agent::RanksOf(left_out) + ": " + how + "\n";
  }
  return text;
}

// Primary failures besides the cause are shown with their last lines, as far as they are few.
std::string ConsequencesText(const AttemptRecord& record) {
  std::string text;
  std::vector<const WorkerRecord*> brief;
  int shown = 0;
  for (const WorkerRecord& worker : record.workers) {
    bool is_cause = &worker == &record.workers[record.cause];
    if (is_cause && record.own_cause.empty()) continue;
    const bool timed_out = agent::EndingOf(worker).kind == agent::EndKind::kTimedOut;
    const bool is_brief =
        timed_out || shown >= kShownFailures || !agent::FailedByItself(EndKindOf(worker));
    std::string evidence = is_brief ? "" : EvidenceText(worker);
    if (evidence.empty()) {
      brief.push_back(&worker);
    } else {
      ++shown;
      text += "  then: " + RanksText({&worker}) + ": " + HowItEnded(worker) + ActivityText(worker) +
              "\n" + StackText(worker, "") + evidence;
    }
  }
  return text + GroupsText(brief) + LeftOutText(record) + FilesText(brief);
}

std::string NextText(const AttemptRecord& record) {
  std::string most = std::to_string(record.max_restarts);
  if (record.restarts) {
    std::string when = record.next_reason.empty() ? "" : ", " + record.next_reason;
    if (record.is_free) return "another attempt" + when + "; no restart is used up";
    int number = record.restart_number.value_or(record.attempt + 1);
    return "restart " + std::to_string(number) + " of " + most + when;
  }
  if (record.stop_signal != 0) {
    return "the end, rankrun was asked to stop by " + SignalName(record.stop_signal);
  }
  std::string why =
      record.max_restarts == 0 ? "--max-restarts is 0" : most + " of " + most + " restarts used";
  if (!record.next_reason.empty()) why = record.next_reason;
  int exit_code = record.exit_code.value_or(ExitCodeOf(record.workers[record.cause]));
  return "the end, " + why + "; exit code " + std::to_string(exit_code);
}

}  // namespace

std::string FormatReport(const AttemptRecord& record) {
  const WorkerRecord& cause = record.workers[record.cause];
  constexpr std::chrono::seconds kLongWait{1};
  std::string text = "rankrun: attempt " + std::to_string(record.attempt) + " failed after " +
                     FormatSeconds(record.lasted);
  if (record.waited >= kLongWait) {
    text += ", and " + FormatSeconds(record.waited) + " of waiting before it";
  }
  text += "\n";
  if (record.own_cause.empty()) {
    text += "  cause: " + RanksText({&cause}) + ": " + agent::CauseInWords(cause) +
            ActivityText(cause) + "\n" + AccusationText(record) + LoggedText(record) +
            LastOperationsText(cause, "") + OperationsFileText(cause) + StackText(cause, "") +
            EvidenceText(cause) + HintText(cause);
  } else {
    text += "  cause: " + record.own_cause + "\n";
  }
  for (const std::string& refusal : record.store_refusals) {
    text += "  store: refused " + OneLine(refusal, kMaxLine) + "\n";
  }
  text += ConsequencesText(record);
  if (!record.cause_nodes.empty()) text += "  nodes of the causes: " + record.cause_nodes + "\n";
  return text + "  next: " + NextText(record) + "\n";
}

}  // namespace rankrun::launcher
