#include "agent/nodes/merged_report.h"

#include <algorithm>
#include <utility>

#include "agent/nodes/job_report.h"

namespace rankrun::agent {

AttemptRecord ReportOnRound(std::vector<AttemptRecord> parts, const RoundOutcome& outcome) {
  AttemptRecord record = MergeReports(std::move(parts), outcome.rank);
  bool is_here = outcome.rank && std::ranges::any_of(record.workers, [&](const auto& worker) {
                   return worker.global_rank == *outcome.rank;
                 });
  if (!is_here) record.own_cause = outcome.cause;
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

}  // namespace rankrun::agent
