#include "agent/nodes/merged_report.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/nodes/job_report.h"
#include "agent/report/verdict.h"

namespace rankrun::agent {
namespace {

constexpr std::string_view kLeaves = "this node leaves the job";
constexpr std::string_view kCloses = "the job was ended at this node";

// Returns whether the part of a node is about this worker. It describes or counts all workers of
// the node, and their ranks are consecutive.
bool IsAbout(const AttemptRecord& part, int rank) {
  auto count = static_cast<int64_t>(part.workers.size());
  int lowest = part.workers.front().global_rank;
  for (const WorkerRecord& worker : part.workers) lowest = std::min(lowest, worker.global_rank);
  for (const LeftOut& left_out : part.left_out) {
    count += left_out.count;
    if (!left_out.bounds.empty()) lowest = std::min(lowest, left_out.bounds.front());
  }
  return rank >= lowest && rank < lowest + count;
}

std::string NodesOfCauses(const AttemptRecord& record, const RoundOutcome& outcome) {
  const std::string found = NodeOfCause(record);
  const std::string& node = found.empty() ? outcome.cause_node : found;
  std::vector<FailureRow> rows = outcome.earlier_failures;
  const bool is_same = !rows.empty() && rows.back().name == node;
  if (!node.empty()) AddFailure(rows, is_same ? rows.back().node : 0, node, record.attempt);
  return FailuresText(rows);
}

}  // namespace

std::string NodeOfCause(const AttemptRecord& record) {
  const WorkerRecord& cause = record.workers[record.cause];
  const EndKind kind = EndKindOf(cause);
  const bool is_known = record.own_cause.empty() && FailedByItself(kind) && !MayBeVictim(kind);
  return is_known ? cause.node : "";
}

AttemptRecord ReportOnRound(std::vector<AttemptRecord> parts, const RoundOutcome& outcome) {
  const bool is_here = outcome.rank && std::ranges::any_of(parts, [&](const auto& part) {
                         return IsAbout(part, *outcome.rank);
                       });
  AttemptRecord record = MergeReports(std::move(parts), outcome.rank);
  if (!is_here) record.own_cause = outcome.cause;
  record.cause_nodes = NodesOfCauses(record, outcome);
  record.restarts = outcome.restarts;
  record.is_free = outcome.is_free;
  record.restart_number = outcome.restart_number;
  bool is_repeated = record.own_cause == outcome.reason;
  record.next_reason = is_repeated ? "another attempt would not help" : outcome.reason;
  if (!outcome.restarts) {
    bool is_of_worker = is_here && !outcome.is_fatal;
    record.exit_code = is_of_worker ? ExitCodeOf(record.workers[record.cause]) : outcome.exit_code;
  }
  return record;
}

AttemptRecord ReportOnOwnPart(AttemptRecord part, const EndNode& end,
                              const std::string& told_failure) {
  const bool is_lost = end.exit_code == kExitLostCoordinator;
  if (!FailedByItself(EndKindOf(part.workers[part.cause]))) {
    const std::string_view request = end.exit_code == kExitDrained ? kLeaves : kCloses;
    const std::string_view own = end.text.empty() ? request : end.text;
    part.own_cause = told_failure.empty() ? own : told_failure;
  }
  part.next_reason = is_lost ? "the coordinator is lost" : end.text;
  part.exit_code = end.exit_code;
  return part;
}

}  // namespace rankrun::agent
