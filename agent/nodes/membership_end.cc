#include <chrono>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/nodes/control_codec.h"
#include "agent/nodes/job_report.h"
#include "agent/nodes/membership.h"
#include "agent/report/verdict.h"
#include "base/log.h"

// The second part of Membership: reports and the end.

namespace rankrun::agent {
namespace {

// Time for the merged report at the end of the job; then this node shows its
// own part.
constexpr std::chrono::seconds kReportTimeout{3};
// Time, in node timeouts, in which the coordinator must reach all nodes at the
// end.
constexpr int kEndTimeouts = 3;

}  // namespace

void Membership::Act(const EndNode& action) {
  end_ = action;
  if (action.exit_code == kExitNoRendezvous) end_->text += hosting_.LoopbackHint();
  JobRecord record = incarnation_.record();
  record.may_restart = host_ != nullptr;  // other nodes may still need the verdict
  incarnation_.Write(std::move(record));
  bool waits = awaited_report_ && link_ != nullptr && link_->is_up();
  report_timer_.Start(waits ? kReportTimeout : Duration::zero());
}

void Membership::HangUp() {
  if (awaited_report_ && own_report_ && own_report_->attempt == *awaited_report_) ShowOwnReport();
  awaited_report_.reset();
  if (link_ != nullptr) link_->Close();
  bool others_need_us = host_ != nullptr && host_->was_used() && !host_has_retired_;
  end_timer_.Start(others_need_us ? nodes_.node_timeout * kEndTimeouts : Duration::zero());
}

// Shows this node's part because the merged report has not arrived.
void Membership::ShowOwnReport() {
  AttemptRecord& record = *own_report_;
  bool is_lost = end_->exit_code == kExitLostCoordinator;
  if (!FailedByItself(record.workers[record.cause])) record.own_cause = end_->text;
  record.next_reason = is_lost ? "the coordinator is lost" : end_->text;
  record.exit_code = end_->exit_code;
  callbacks_.show_report(record);
}

void Membership::SendReport(AttemptRecord record) {
  for (WorkerRecord& worker : record.workers) worker.node = nodes_.node_name;
  own_report_ = std::move(record);
  report_is_owed_ = true;
  if (link_ != nullptr && link_->is_up()) SendOwnReport();
}

void Membership::SendOwnReport() {
  const AttemptRecord& record = *own_report_;
  link_->Send(Encode(MemberMessage(Report{record.attempt, EncodeReport(record, kMaxPartBytes)})));
}

// Waits for the merged report, even on a node without a failure.
void Membership::AwaitReport(const Verdict& verdict) {
  constexpr int kAnyAttempt = -1;
  if (verdict.report_follows && !awaited_report_) awaited_report_ = kAnyAttempt;
}

void Membership::OnJobReport(const JobReport& report) {
  auto record = DecodeReport(report.record);
  if (!record) return LogWarn("the coordinator sent " + record.error().message);
  if (own_report_ && report.attempt >= own_report_->attempt) report_is_owed_ = false;
  callbacks_.show_report(*record);
  if (!record->restarts) judged_exit_code_ = record->exit_code;
  if (awaited_report_ && report.attempt >= *awaited_report_) awaited_report_.reset();
  if (end_ && !awaited_report_) report_timer_.Start(Duration::zero());
}

void Membership::MaybeEnd() {
  if (!end_ || (host_ != nullptr && !host_has_retired_)) return;
  bool is_success = end_->exit_code == 0;
  callbacks_.on_end(is_success ? 0 : judged_exit_code_.value_or(end_->exit_code), end_->text);
}

}  // namespace rankrun::agent
