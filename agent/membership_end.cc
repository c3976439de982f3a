#include <chrono>
#include <utility>

#include "agent/cause.h"
#include "agent/control_codec.h"
#include "agent/exit_codes.h"
#include "agent/job_report.h"
#include "agent/membership.h"
#include "base/log.h"

// The second half of Membership: reports, and the end.

namespace rankrun::agent {
namespace {

// For the report of the job at its end; then this node's part of it is shown.
constexpr std::chrono::seconds kReportPatience{3};
// Of node timeouts: how long the coordinator may take to tell all of the end.
constexpr int kEndPatience = 3;

}  // namespace

void Membership::Act(const EndNode& action) {
  end_ = action;
  if (action.exit_code == kExitNoRendezvous) end_->text += WhyAlone();
  JobRecord record = incarnation_.record();
  record.may_restart = host_ != nullptr;  // others may still have to be told
  incarnation_.Write(std::move(record));
  bool waits = owed_report_ && link_ != nullptr && link_->is_up();
  report_patience_.Start(waits ? kReportPatience : Duration::zero());
}

void Membership::HangUp() {
  if (owed_report_ && own_report_ && own_report_->attempt == *owed_report_) ShowOwnReport();
  owed_report_.reset();
  if (link_ != nullptr) link_->Close();
  bool others_need_us = host_ != nullptr && host_->was_used() && !host_has_retired_;
  end_timer_.Start(others_need_us ? nodes_.node_timeout * kEndPatience : Duration::zero());
}

// The job's has not come.
void Membership::ShowOwnReport() {
  AttemptRecord& record = *own_report_;
  bool is_lost = end_->exit_code == kExitLostCoordinator;
  if (!FailedByItself(record.workers[record.cause])) record.own_cause = end_->text;
  record.next_reason = is_lost ? "the coordinator is lost" : end_->text;
  record.exit_code = end_->exit_code;
  callbacks_.show_report(record);
}

void Membership::TellReport(AttemptRecord record) {
  for (WorkerRecord& worker : record.workers) worker.node = nodes_.node_name;
  int attempt = record.attempt;
  if (link_ != nullptr) link_->Send(Encode(MemberMessage(Report{attempt, EncodeReport(record)})));
  own_report_ = std::move(record);
}

// Also where nothing has failed.
void Membership::AwaitReport(const Verdict& verdict) {
  constexpr int kWhatever = -1;
  if (verdict.report_follows && !owed_report_) owed_report_ = kWhatever;
}

void Membership::OnJobReport(const JobReport& report) {
  auto record = DecodeReport(report.record);
  if (!record) return LogWarn("the coordinator sent " + record.error().message);
  callbacks_.show_report(*record);
  if (owed_report_ && report.attempt >= *owed_report_) owed_report_.reset();
  if (end_ && !owed_report_) report_patience_.Start(Duration::zero());
}

void Membership::MaybeEnd() {
  if (end_ && (host_ == nullptr || host_has_retired_)) {
    callbacks_.on_end(end_->exit_code, end_->text);
  }
}

}  // namespace rankrun::agent
