#include "launcher/report.h"

#include <algorithm>
#include <vector>

#include "agent/line_buffer.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/roll_call.h"

namespace rankrun::launcher {
namespace {

using agent::AttemptRecord;
using agent::WorkerRecord;

constexpr size_t kShownLines = 20;
constexpr size_t kLongestLine = 300;  // in characters

std::string Evidence(const WorkerRecord& worker) {
  std::string text;
  if (worker.exception) {
    for (const std::string& line : agent::LastLines(*worker.exception, kShownLines)) {
      text += "    exception: " + OneLine(line, kLongestLine) + "\n";
    }
  }
  std::vector<std::string> lines = agent::LastLines(worker.stderr_tail, kShownLines);
  if (lines.empty()) return text;
  text += "    last lines of its standard error:\n";
  for (const std::string& line : lines) text += "    | " + OneLine(line, kLongestLine) + "\n";
  if (!worker.stderr_file.empty()) text += "    more: " + worker.stderr_file + "\n";
  return text;
}

// Workers of which there is nothing to show but that they ended alike.
std::string Who(const std::vector<const WorkerRecord*>& workers) {
  std::vector<int> ranks;
  for (const WorkerRecord* worker : workers) ranks.push_back(worker->global_rank);
  std::string who = (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks);
  if (workers.size() > 1 || workers[0]->pid == 0) return who;
  return who + " (pid " + std::to_string(workers[0]->pid) + ")";
}

std::string Consequences(const AttemptRecord& record) {
  std::vector<const WorkerRecord*> left;
  for (const WorkerRecord& worker : record.workers) {
    if (&worker != &record.workers[record.cause]) left.push_back(&worker);
  }
  std::string text;
  while (!left.empty()) {
    std::string how = HowItEnded(*left[0]);
    std::string evidence = Evidence(*left[0]);
    std::vector<const WorkerRecord*> alike{left[0]};
    auto joins = [&](const WorkerRecord* other) {
      return other != left[0] && evidence.empty() && HowItEnded(*other) == how &&
             Evidence(*other).empty();
    };
    std::copy_if(left.begin(), left.end(), std::back_inserter(alike), joins);
    text += "  then: " + Who(alike) + ": " + how + "\n" + evidence;
    std::erase_if(left, [&](const WorkerRecord* worker) {
      return std::find(alike.begin(), alike.end(), worker) != alike.end();
    });
  }
  return text;
}

std::string WhatNext(const AttemptRecord& record) {
  std::string most = std::to_string(record.max_restarts);
  if (record.restarts) {
    std::string when = record.next_reason.empty() ? "" : ", " + record.next_reason;
    return "restart " + std::to_string(record.attempt + 1) + " of " + most + when;
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
  std::string text = "rankrun: attempt " + std::to_string(record.attempt) + " failed after " +
                     FormatSeconds(record.lasted) + "\n";
  text += "  cause: " + Who({&cause}) + ": " + HowItEnded(cause) + "\n" + Evidence(cause);
  text += Consequences(record);
  return text + "  next: " + WhatNext(record) + "\n";
}

}  // namespace rankrun::launcher
