#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/guardian/incarnation.h"
#include "agent/guardian/stop_filter.h"
#include "agent/job/job_spec.h"
#include "agent/machine/machine_share.h"
#include "agent/nodes/membership.h"
#include "agent/output/job_output.h"
#include "agent/output/stdin_source.h"
#include "agent/process/sweeper.h"
#include "agent/report/attempt_reports.h"
#include "agent/supervisor/attempt_store.h"
#include "agent/supervisor/breakpoints.h"
#include "agent/supervisor/health_monitor.h"
#include "agent/supervisor/job_observers.h"
#include "agent/supervisor/late_stacks.h"
#include "agent/supervisor/lifeline.h"
#include "agent/supervisor/node_part.h"
#include "agent/supervisor/quiet_notice.h"
#include "agent/supervisor/signal_catcher.h"
#include "agent/worker/attempt.h"
#include "agent/worker/worker_channels.h"
#include "base/uv/uv_poll.h"

namespace rankrun::agent {

// Runs a job's workers on this node: turns exits, signals and deadlines into events of
// worker_group's Step and carries out its actions. Hosts the store of the workers.
// Thread: loop.  Lifetime: within that of `loop`, `spec` and `incarnation`.
class Supervisor {
 public:
  using Reporter = AttemptReports::Formatter;  // of the report on a failed attempt

  Supervisor(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Reporter reporter);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Opens all resources of the first attempt and catches signals. Starts no worker.
  // Errors: kInvalid, kSystem.
  Result<void> Open();

  // Runs the job to its end; returns the guardian's exit code or signal. Nothing of the job is left
  // then. All output has been written, unless its reader has not read for minutes.
  Goodbye Run();

 private:
  friend class Inspection;
  Result<void> OpenEvents();
  Result<void> OpenObservers();
  Result<void> OpenChannels();
  Result<void> CatchSignals();
  void Post(const Event& event);
  void Decide();
  void Apply(const Event& event);
  void Advance(const Event& event);
  void Act(const StartAttempt&);
  void Act(const SignalWorkers& action);
  void Act(const AwaitSaving& action);
  void Act(const Sweep& action);
  void Act(const ArmDeadline&);
  void Act(const ReportStuck&);
  void OnStarted(int local_rank);
  void OnEnded(const WorkerRecord& record, EndKind kind);
  void OnTimerExpired(const TimerServer::Expired& expired);
  void OnTimeLimit();
  HealthMonitor::Callbacks OnHealth();
  void OnHang(const HangVerdict& verdict);
  void OnHealthOrder(const HealthOrder& order);
  void OnUnfinished(const HangVerdict& unfinished);
  void OnStuck(pid_t worker);
  void OnLinkReadable();
  void OnSignal(const SignalOrigin& origin);
  void StopGently(const SignalOrigin& origin);
  void StopAtOnce(int signal_number);
  void OnLifelineEnded(const std::string& program);
  void OnGuardianLost();
  Breakpoints::Callbacks OnBreakpoints();
  void ReapOrphans();
  void OnOutputProgress();
  void EndAttempt();
  void NoteCause(const AttemptRecord& record);
  Goodbye Ending() const;
  void FinishWhenShown();

  // For the coordinator; in supervisor_nodes.cc.
  Result<void> OpenLocalCoordinator();
  Result<void> OpenMembership();
  void StartAt(const NodePlace& place);
  void OnDecided(const RoundOutcome& outcome, Duration pause, int restarts);
  void StopByOrder(const StopWorkers& order);
  void NoteEnd(const WorkerRecord& record, EndKind kind);
  void NoteFailure(const WorkerRecord& record, EndKind kind);
  void TellFailure();
  void NoteIdle();
  void ReportPart(AttemptRecord record);
  void ShowReport(const AttemptRecord& record);
  void LeaveOrClose(int signal_number);
  void CloseJob(const std::string& text, int exit_code);

  Loop& loop_;
  const JobSpec& spec_;
  const GroupPolicy policy_;
  Incarnation& incarnation_;
  GuardianLink& link_ = incarnation_.link();
  MachineShare share_;
  GroupState state_;
  StopFilter stop_filter_;
  pid_t guardian_ = getppid();
  std::vector<Event> events_;  // to be applied in the next turn of the loop
  Fd null_fd_;
  JobOutput output_;
  StdinSource input_;
  WorkerChannels channels_;
  AttemptReports reports_;
  bool impatient_ = false;  // two requests to stop: do not wait long for the terminal
  int exit_code_ = 0;
  bool workers_stopped_ = false;  // by Ctrl-Z
  Sweeper sweeper_;
  AttemptStore store_;
  Breakpoints breakpoints_;
  HealthMonitor health_;
  SignalCatcher signals_;
  Timer decide_;
  Timer deadline_;
  Timer time_limit_;
  Timer flush_deadline_;
  std::unique_ptr<Poll> link_poll_;
  std::unique_ptr<JobObservers> observers_;
  std::unique_ptr<EventLog> event_log_;
  std::vector<std::unique_ptr<Lifeline>> lifelines_;
  std::unique_ptr<class Preloader> preloader_;  // null: workers are executed
  Spawner spawner_;                             // its threads use the preloader
  LateStacks stacks_{loop_, spawner_};
  QuietNotice quiet_notice_{loop_, spawner_, output_};
  std::unique_ptr<Attempt> attempt_;
  NodePlace place_;  // of the attempt
  NodePart part_;
  std::unique_ptr<CoordinatorClient> coordinator_;
  Membership* membership_ = nullptr;  // coordinator_ of a job of several nodes
  std::unique_ptr<class Inspection> inspection_;
};

}  // namespace rankrun::agent
