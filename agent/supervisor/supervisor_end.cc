#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/supervisor/inspection.h"
#include "agent/supervisor/supervisor.h"
#include "base/uv/uv_loop.h"

// The part of Supervisor that ends attempts and the job.

namespace rankrun::agent {
namespace {

// Longest time that the last output waits for its reader, such as a pager.
// One or two requests to stop shorten it.
constexpr std::chrono::seconds kFlushTimeout{300};
constexpr std::chrono::seconds kFlushTimeoutStopped{10};
constexpr std::chrono::seconds kFlushTimeoutKilled{1};

}  // namespace

Goodbye Supervisor::Ending() const {
  Goodbye goodbye{.exit_code = exit_code_, .end_signal = 0};
  bool is_drained = membership_ && state_.stop_signal == SIGTERM;
  if (state_.phase == Phase::kStopped && !is_drained) goodbye.end_signal = state_.stop_signal;
  if (state_.phase == Phase::kTimedOut) goodbye.exit_code = kExitTimedOut;
  if (state_.phase == Phase::kFailed && state_.stuck) goodbye.exit_code = kExitHang;
  return goodbye;
}

void Supervisor::EndAttempt(const GroupState& next) {
  AttemptRecord record = attempt_->TakeRecord();
  stacks_.AddTo(record);
  if (inspection_) inspection_->KeepOutput();
  attempt_.reset();
  record.own_cause = health_.own_cause();
  if (!record.own_cause.empty()) record.exit_code = kExitHang;
  health_.EndAttempt();
  sweeper_.Reset();
  if (channels_.timers) channels_.timers->Forget();
  if (membership_) return ReportPart(std::move(record));
  if (next.phase == Phase::kRunning && state_.restart_asked) {
    return event_log_->RestartAsked(state_.history.restarts, kAskedByRankctl);
  }
  const WorkerRecord& cause = record.workers[record.cause];
  // Workers that end after a request to stop have not failed, unless they had
  // failed before it.
  bool asked = next.phase == Phase::kStopped || next.phase == Phase::kTimedOut;
  bool none_failed = std::ranges::none_of(record.workers, &WorkerRecord::failed);
  if (none_failed || (asked && (!cause.failed() || cause.sent_signal != 0))) return;
  if (next.phase == Phase::kFailed) record.parent_error_file = ParentErrorFile(spec_.environment);
  RecordNextStep(record, next);
  if (record.restarts) event_log_->Restart(record, next.pause);
  if (LogDirectory* logs = output_.logs()) logs->Keep();
  reports_.Add(*event_log_, std::move(record));
}

// The complete evidence may show another cause than that which was known at the end.
void Supervisor::NoteCause(const AttemptRecord& record) {
  bool is_last = !membership_ && state_.phase == Phase::kFailed && !record.restarts;
  if (is_last) exit_code_ = record.exit_code.value_or(ExitCodeOf(record.workers[record.cause]));
}

void Supervisor::FinishWhenShown() {
  if (reports_.idle()) event_log_->JobEnded(Ending());
  const bool is_written = event_log_->written() && observers_->idle();
  if (reports_.idle() && output_.idle() && is_written) return loop_.Stop();
  auto timeout = stop_filter_.requests() > 0 ? kFlushTimeoutStopped : kFlushTimeout;
  flush_deadline_.Start(impatient_ ? kFlushTimeoutKilled : timeout);
}

}  // namespace rankrun::agent
