#include "agent/guardian/incarnation.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rankrun::agent {

Incarnation::Incarnation(GuardianLink link, JobMemory memory, Fd liveness_socket)
    : link_(std::move(link)),
      memory_(std::move(memory)),
      record_(memory_.Read()),
      liveness_socket_(std::move(liveness_socket)) {}

void Incarnation::Write(JobRecord record) {
  if (record == record_) return;
  record_ = std::move(record);
  auto written = memory_.Write(record_);
  if (!written && !std::exchange(warned_, true)) LogWarn(written.error().message);
}

void Incarnation::KeepRunId(std::string& run_id) {
  if (!is_first() && !record_.run_id.empty()) run_id = record_.run_id;
  JobRecord record = record_;
  record.run_id = run_id;
  Write(std::move(record));
}

Duration Incarnation::LeftOf(Duration limit) const {
  Duration passed = std::chrono::steady_clock::now() - record_.job_began;
  return is_first() ? limit : std::max(Duration::zero(), limit - passed);
}

GroupState Incarnation::FirstState() const {
  if (is_first() || !record_.restarts) return {};
  const RestartsUsed& restarts = *record_.restarts;
  // The previous attempt failed together with its agent. The next attempt's
  // number is the number of restarts used.
  return {.attempt = restarts.used - 1,
          .failed = true,
          .history = {.restarts = restarts.used,
                      .consecutive_failures = restarts.consecutive_failures}};
}

void Incarnation::Note(const JobSpec& spec, const GroupState& state, const LogDirectory* logs) {
  JobRecord record = record_;
  if (logs != nullptr) record.folder = logs->ForRecord();
  record.events_file = spec.events_file;
  record.attempt = std::max(record.attempt, state.attempt);
  if (!spec.nodes) {
    record.may_restart = CanResumeAfterAgentDeath(state);
    // Restarts that the guardian counted stay used, even before the first
    // attempt of this incarnation. A pending restart is not counted: it is the
    // one that the agent's death would cause.
    int used = std::max(record.restarts ? record.restarts->used : 0, state.attempt);
    record.restarts = RestartsUsed{used, spec.max_restarts, state.history.consecutive_failures};
  }
  Write(std::move(record));
}

bool CanResumeAfterAgentDeath(const GroupState& state) {
  bool begun = state.attempt >= 0;
  bool done = begun && state.phase == Phase::kSweeping && !state.failed;
  return !state.over() && !done && state.stop_signal == 0 && !state.timed_out && !state.stuck;
}

}  // namespace rankrun::agent
