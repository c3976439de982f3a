#include <utility>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/job_report.h"
#include "agent/nodes/membership.h"
#include "agent/nodes/merged_report.h"
#include "base/log.h"

// The second part of Membership: reports and the end, which MemberEnd decides.

namespace rankrun::agent {

bool Membership::IsLinkUp() const { return link_ != nullptr && link_->is_up(); }

EndView Membership::ViewOfEnd() const {
  return {.is_link_up = IsLinkUp(),
          .is_hosting = host_ != nullptr,
          .host_was_used = host_ != nullptr && host_->was_used(),
          .now = Now()};
}

void Membership::Carry(const std::vector<EndAction>& actions) {
  for (const EndAction& action : actions) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  ArmEnd();
}

void Membership::ArmEnd() {
  auto deadline = end_.deadline();
  if (deadline) end_timer_.Start(*deadline - Now());
}

void Membership::Act(const EndNode& action) {
  Carry(end_.OnEnd(action, hosting_.LoopbackHint(), ViewOfEnd()));
}

void Membership::Act(const PermitRestart& action) {
  JobRecord record = incarnation_.record();
  record.may_restart = action.is_permitted;
  incarnation_.Write(std::move(record));
}

void Membership::Act(const SendOwnPart&) {
  const AttemptRecord& record = *own_report_;
  link_->Send(Encode(MemberMessage(Report{record.attempt, EncodeReport(record, kMaxPartBytes)})));
}

void Membership::Act(const ShowOwnPart& action) {
  callbacks_.show_report(ReportOnOwnPart(*own_report_, action.end, action.told_failure));
}

void Membership::Act(const CloseLink&) {
  if (link_ != nullptr) link_->Close();
}

void Membership::SendReport(AttemptRecord record) {
  for (WorkerRecord& worker : record.workers) worker.node = nodes_.node_name;
  own_report_ = std::move(record);
  Carry(end_.OnOwnPart(own_report_->attempt, ViewOfEnd()));
}

void Membership::OnJobReport(const JobReport& report) {
  auto record = DecodeReport(report.record);
  if (!record) return LogWarn("the coordinator sent " + record.error().message);
  const bool is_new =
      end_.OnMergedReport({report.attempt, record->restarts, record->exit_code}, Now());
  if (is_new) callbacks_.show_report(*record);
  ArmEnd();
}

}  // namespace rankrun::agent
