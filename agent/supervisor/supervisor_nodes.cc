#include <signal.h>

#include <algorithm>
#include <string>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/nodes/local_coordinator.h"
#include "agent/process/descendants.h"
#include "agent/report/verdict.h"
#include "agent/supervisor/inspection.h"
#include "agent/supervisor/supervisor.h"
#include "base/format.h"
#include "base/uv/uv_stream.h"

// The part of Supervisor for the coordinator, which orders attempts, restarts and the end,
// and gets to know what happens on this node.

namespace rankrun::agent {

Result<void> Supervisor::OpenLocalCoordinator() {
  LocalCoordinator::Callbacks callbacks{
      .open_store = [this] { return store_.OpenForAttempt(); },
      .start = [this](const NodePlace& place) { StartAt(place); },
      .on_decided = [this](const RoundOutcome& outcome, Duration pause,
                           int restarts) { OnDecided(outcome, pause, restarts); },
      .on_end =
          [this](int exit_code) {
            exit_code_ = exit_code;
            Post(EndOrdered{exit_code == 0});
          }};
  coordinator_ =
      std::make_unique<LocalCoordinator>(loop_, spec_, incarnation_, std::move(callbacks));
  return store_.Open();
}

Result<void> Supervisor::OpenMembership() {
  Membership::Callbacks callbacks{
      .open_store = [this] { return store_.OpenForRound(); },
      .admit_only = [this](const auto& clients) { store_.AdmitOnly(clients); },
      .start = [this](const NodePlace& place) { StartAt(place); },
      .stop = [this](const StopWorkers& order) { StopByOrder(order); },
      .report_success =
          [this] {
            part_.stopped_for_failure = true;
            if (part_.success) ReportPart(*std::exchange(part_.success, std::nullopt));
          },
      .say = [this](const std::string& text) { output_.Say(text); },
      .on_node_lost =
          [this](const std::string& text) {
            event_log_->NodeLost(text);
            output_.Say("rankrun: " + text + "; the job goes on without it\n");
          },
      .on_decision =
          [this](const Announcement& made) { event_log_->Decided(made.attempt, made.decision); },
      .show_report = [this](const AttemptRecord& record) { ShowReport(record); },
      .on_health_order = [this](const HealthOrder& order) { OnHealthOrder(order); },
      .on_relay = [this](const Relay& relay) { inspection_->OnRelay(relay); },
      .judge_clients = [this](const auto& question) { return store_.Judge(question); },
      .on_verdict = [this](const auto& verdict) { store_.OnVerdict(verdict); },
      .on_end =
          [this](int exit_code, const std::string& text) {
            exit_code_ = exit_code;
            if (!text.empty() && !part_.report_shown)
              output_.Say("rankrun: the job is over: " + text + "\n");
            Post(EndOrdered{exit_code == 0});
          }};
  auto membership = std::make_unique<Membership>(loop_, spec_, incarnation_, std::move(callbacks));
  membership_ = membership.get();
  coordinator_ = std::move(membership);
  if (auto opened = membership_->Open(); !opened) return opened;
  store_.AskForClients([this](StoreClient client) { membership_->AskWhose(std::move(client)); });
  return store_.Open([this](std::unique_ptr<Stream> stream, std::string_view first_bytes) {
    membership_->Adopt(std::move(stream), first_bytes);
  });
}

void Supervisor::StartAt(const NodePlace& place) {
  place_ = place;
  part_ = {};
  store_.ForgetWorkers();
  Post(StartOrdered{place.attempt});
}

void Supervisor::StopByOrder(const StopWorkers& order) {
  health_.ForgetFinished();  // the next round has other workers
  part_.stopped_for_failure |= order.is_failure;
  if (attempt_ && order.is_failure) attempt_->PublishPeerDeath(order.why);
  if (!order.why.empty()) output_.Say("rankrun: stopping the workers: " + order.why + "\n");
  Post(StopOrdered{order.at_once});
}

void Supervisor::NoteEnd(const WorkerRecord& record, EndKind kind) {
  if (record.failed()) NoteFailure(record, kind);
  std::vector<int> left = attempt_->Unfinished();
  if (!left.empty()) coordinator_->NoteWorkersLeft(std::move(left));
}

// Reports the failure before the other workers are stopped, so that all nodes stop at once;
// that of a possible victim only when they are stopped.
void Supervisor::NoteFailure(const WorkerRecord& record, EndKind kind) {
  const bool is_victim = MayBeVictim(kind);
  const bool is_better = !part_.failure || (part_.is_of_victim && !is_victim);
  if (state_.phase != Phase::kRunning || !is_better) return;
  part_.is_of_victim = is_victim;
  std::string where = spec_.nodes ? " on " + spec_.nodes->node_name : "";
  part_.failure = Cause{.text = "rank " + std::to_string(record.global_rank) + where + " (pid " +
                                std::to_string(record.pid) + "): " + HowItEnded(record),
                        .exit_code = ExitCodeOf(record),
                        .rank = record.global_rank,
                        .is_primary = FailedByItself(kind),
                        .may_be_victim = is_victim};
  if (!spec_.continue_on_failure && !is_victim) TellFailure();
}

void Supervisor::TellFailure() {
  if (part_.failure && !std::exchange(part_.failure_is_told, true)) {
    coordinator_->NoteFailure(*part_.failure);
  }
}

void Supervisor::NoteIdle() {
  TellFailure();
  coordinator_->NoteWorkersOver(state_.has_succeeded());
}

// Sends this node's part of the report once its evidence is complete.
void Supervisor::ReportPart(AttemptRecord record) {
  if (!part_.failure && !part_.stopped_for_failure) {
    part_.success = std::move(record);
    return;
  }
  if (LogDirectory* logs = output_.logs()) logs->Keep();
  membership_->AnnounceReport(record.attempt);
  reports_.Add(*event_log_, std::move(record));
}

void Supervisor::ShowReport(const AttemptRecord& record) {
  part_.report_shown = !record.restarts;
  if (record.restarts) event_log_->Restart(record, Duration::zero());
  reports_.Show(*event_log_, record);
}

void Supervisor::Act(const ReportStuck&) {
  std::vector<pid_t> pids = attempt_ ? attempt_->Running() : Descendants();
  if (pids.empty()) pids = Descendants();  // its start is still under way
  if (pids.empty() || membership_ == nullptr) return;
  auto in_kernel = std::ranges::find(pids, 'D', StateOf);
  pid_t pid = in_kernel != pids.end() ? *in_kernel : pids.front();
  auto local_rank = attempt_ ? attempt_->LocalRankOf(pid) : std::nullopt;
  membership_->NoteStuck({.local_rank = local_rank.value_or(-1), .what = DescribeProcess(pid)});
}

// SIGTERM comes from a scheduler that takes this node away; other nodes go on. Other signals
// come from the user and end the whole job.
void Supervisor::LeaveOrClose(int signal_number) {
  if (membership_ != nullptr && signal_number == SIGTERM)
    return membership_->RequestLeave("it got SIGTERM");
  CloseJob("stopped by " + SignalName(signal_number), 128 + signal_number);
}

void Supervisor::CloseJob(const std::string& text, int exit_code) {
  std::string where = spec_.nodes ? "node " + spec_.nodes->node_name + ": " : "";
  coordinator_->RequestClose({.text = where + text,
                              .exit_code = exit_code,
                              .is_primary = false,
                              .is_fatal = true,
                              .consumes_restart = false});
}

}  // namespace rankrun::agent
