#include "agent/coordination/member_end.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {
namespace {

// Time for the merged report at the end of the job; then this node shows its
// own part.
constexpr std::chrono::seconds kReportTimeout{3};
// Time, in node timeouts, in which the coordinator must reach all nodes at the
// end.
constexpr int kEndTimeouts = 3;
constexpr int kLastAttempt = -1;

}  // namespace

void MemberEnd::OnRound() {
  awaited_.reset();
  told_failure_.clear();
}

// A stop at once is the member's own, for want of the coordinator.
void MemberEnd::OnStop(const StopWorkers& order) {
  if (order.is_failure && !order.at_once) told_failure_ = order.why;
}

void MemberEnd::OnVerdict(const Verdict& verdict) {
  if (verdict.report_follows && !awaited_) awaited_ = kLastAttempt;
}

std::vector<EndAction> MemberEnd::OnOwnPart(int attempt, const EndView& view) {
  own_attempt_ = attempt;
  is_owed_ = true;
  if (view.is_link_up && !has_retired_) return {SendOwnPart{}};
  if (hang_up_at_ && awaits_own_part_) hang_up_at_ = view.now;
  return {};
}

bool MemberEnd::IsOwnPartToCome() const {
  return awaited_ && *awaited_ != kLastAttempt && own_attempt_ != awaited_;
}

std::vector<EndAction> MemberEnd::OnLinkUp() const {
  if (!is_owed_) return {};
  return {SendOwnPart{}};
}

bool MemberEnd::OnMergedReport(const MergedReport& report, TimePoint now) {
  const bool is_new = std::exchange(merged_attempt_, report.attempt) != report.attempt;
  if (own_attempt_ && report.attempt >= *own_attempt_) is_owed_ = false;
  // Without an outcome of its own, a coordinator that has just begun reports 0.
  if (!report.restarts && report.exit_code != 0) judged_exit_code_ = report.exit_code;
  const bool is_awaited =
      awaited_ == kLastAttempt ? !report.restarts : awaited_ && report.attempt >= *awaited_;
  if (is_awaited) awaited_.reset();
  if (hang_up_at_ && !awaited_) hang_up_at_ = now;
  return is_new;
}

std::vector<EndAction> MemberEnd::OnEnd(const EndNode& end, const std::string& hint,
                                        const EndView& view) {
  end_ = end;
  if (end.exit_code == kExitNoRendezvous) end_->text += hint;
  awaits_own_part_ = IsOwnPartToCome() && !view.is_link_up;
  const bool waits = awaits_own_part_ || (awaited_ && view.is_link_up);
  hang_up_at_ = waits ? view.now + kReportTimeout : view.now;
  return {PermitRestart{view.is_hosting}};  // other nodes may still need the verdict
}

void MemberEnd::OnRetired(TimePoint now) {
  has_retired_ = true;
  if (!end_ || is_over_) return;
  if (!hang_up_at_) {
    exit_at_ = now;
  } else if (IsOwnPartToCome()) {
    awaits_own_part_ = true;
  } else {
    hang_up_at_ = now;  // nobody merges any more
  }
}

std::vector<EndAction> MemberEnd::OnTick(const EndView& view) {
  std::vector<EndAction> actions;
  if (hang_up_at_ && view.now >= *hang_up_at_) HangUp(view, actions);
  if (!exit_at_ || view.now < *exit_at_) return actions;
  hang_up_at_.reset();
  exit_at_.reset();
  is_over_ = true;
  const bool is_success = end_->exit_code == 0;
  actions.emplace_back(
      EndAgent{is_success ? 0 : judged_exit_code_.value_or(end_->exit_code), end_->text});
  return actions;
}

void MemberEnd::HangUp(const EndView& view, std::vector<EndAction>& actions) {
  hang_up_at_.reset();
  if (awaited_ && own_attempt_ == awaited_) actions.emplace_back(ShowOwnPart{*end_, told_failure_});
  awaited_.reset();
  actions.emplace_back(CloseLink{});
  const bool others_need_us = view.is_hosting && view.host_was_used && !has_retired_;
  exit_at_ = others_need_us ? view.now + node_timeout_ * kEndTimeouts : view.now;
}

std::optional<TimePoint> MemberEnd::deadline() const {
  if (!hang_up_at_ || !exit_at_) return hang_up_at_ ? hang_up_at_ : exit_at_;
  return std::min(*hang_up_at_, *exit_at_);
}

}  // namespace rankrun::agent
