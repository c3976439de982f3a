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

// Copies the decision after an attempt of a job of one node, of which `last` is the state.
void RecordNextStep(AttemptRecord& record, const GroupState& last, const RoundOutcome& outcome) {
  record.restarts = outcome.restarts;
  if (outcome.restarts) record.restart_number = outcome.restart_number;
  record.next_reason = outcome.is_fatal ? "" : outcome.reason;
  record.stop_signal = last.stop_signal;
  if (last.stuck) {
    record.cause = static_cast<size_t>(*last.stuck);
    record.exit_code = kExitHang;
    record.next_reason = record.workers[record.cause].hang.empty()
                             ? "a restart would not help, because a worker hangs in the kernel"
                             : "a restart would not help, because other workers have finished";
  }
  if (last.timed_out && last.stop_signal == 0) {
    record.exit_code = kExitTimedOut;
    record.next_reason = "the job's time (--timeout) is over";
  }
}

}  // namespace

Goodbye Supervisor::Ending() const {
  Goodbye goodbye{.exit_code = exit_code_, .end_signal = 0};
  if (state_.phase == Phase::kFailed) goodbye.exit_code = part_.exit_code.value_or(exit_code_);
  bool is_drained = membership_ != nullptr && state_.stop_signal == SIGTERM;
  if (state_.phase == Phase::kStopped && !is_drained) goodbye.end_signal = state_.stop_signal;
  if (state_.phase == Phase::kTimedOut) goodbye.exit_code = kExitTimedOut;
  if (state_.phase == Phase::kFailed && state_.stuck) goodbye.exit_code = kExitHang;
  return goodbye;
}

void Supervisor::EndAttempt() {
  AttemptRecord record = attempt_->TakeRecord();
  stacks_.AddTo(record);
  record.store_refusals = store_.TakeRefusals();
  if (record.attempt == 0) {
    const Duration since_start = std::chrono::steady_clock::now() - incarnation_.record().job_began;
    record.waited = std::max(Duration::zero(), since_start - record.lasted);
  }
  if (inspection_) inspection_->KeepOutput();
  attempt_.reset();
  record.own_cause = health_.own_cause();
  if (!record.own_cause.empty()) record.exit_code = kExitHang;
  health_.EndAttempt();
  sweeper_.Reset();
  if (channels_.timers) channels_.timers->Forget();
  if (membership_ != nullptr) return ReportPart(std::move(record));
  part_.undecided = std::move(record);
}

// Reports the attempt that has ended on this node alone.
void Supervisor::OnDecided(const RoundOutcome& outcome, Duration pause, int restarts) {
  if (!part_.undecided) return;  // none has begun since the last decision
  AttemptRecord record = *std::exchange(part_.undecided, std::nullopt);
  if (outcome.is_free) return event_log_->RestartAsked(restarts, kAskedByRankctl);
  const WorkerRecord& cause = record.workers[record.cause];
  // Workers that end after a request to stop have not failed, unless they had
  // failed before it.
  bool asked = state_.stop_signal != 0 || state_.timed_out;
  bool none_failed = std::ranges::none_of(record.workers, &WorkerRecord::failed);
  if (none_failed || (asked && (!cause.failed() || cause.sent_signal != 0))) return;
  bool is_last = !outcome.restarts && !asked;
  if (is_last) record.parent_error_file = ParentErrorFile(spec_.environment);
  RecordNextStep(record, state_, outcome);
  if (record.restarts) event_log_->Restart(record, pause);
  if (LogDirectory* logs = output_.logs()) logs->Keep();
  reports_.Add(*event_log_, std::move(record));
}

// The complete evidence may show another cause than that which was known at the end.
void Supervisor::NoteCause(const AttemptRecord& record) {
  if (membership_ != nullptr || record.restarts) return;
  part_.exit_code = record.exit_code.value_or(ExitCodeOf(record.workers[record.cause]));
}

void Supervisor::FinishWhenShown() {
  if (reports_.idle()) event_log_->JobEnded(Ending());
  const bool is_written = event_log_->written() && observers_->idle();
  if (reports_.idle() && output_.idle() && is_written) return loop_.Stop();
  auto timeout = stop_filter_.requests() > 0 ? kFlushTimeoutStopped : kFlushTimeout;
  flush_deadline_.Start(impatient_ ? kFlushTimeoutKilled : timeout);
}

}  // namespace rankrun::agent
