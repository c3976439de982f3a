#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt.h"
#include "agent/attempt_reports.h"
#include "agent/attempt_store.h"
#include "agent/event_log.h"
#include "agent/incarnation.h"
#include "agent/job_output.h"
#include "agent/job_spec.h"
#include "agent/lifeline.h"
#include "agent/machine_share.h"
#include "agent/membership.h"
#include "agent/signal_catcher.h"
#include "agent/stdin_source.h"
#include "agent/stop_filter.h"
#include "agent/stuck_watch.h"
#include "agent/sweeper.h"
#include "agent/worker_channels.h"
#include "agent/worker_group.h"
#include "base/spawner.h"
#include "base/uv_poll.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// Runs a job's workers on this node: turns exits, signals and deadlines into
// events of worker_group's Step and carries out its actions. Hosts the store
// in which the workers of an attempt meet.
// Thread: loop.
class Supervisor {
 public:
  // The text of a report on a failed attempt.
  using Reporter = AttemptReports::Formatter;

  // `loop`, `spec` and `incarnation` outlive it.
  Supervisor(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Reporter reporter);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Takes what the first attempt needs of the machine and catches signals.
  // Errors: kInvalid or kSystem; nothing has been started then.
  Result<void> Open();

  // Runs the job to its end; returns how the guardian is to end then. Nothing
  // of the job is left, and all output has been written, or nobody has read it
  // for minutes.
  Goodbye Run();

 private:
  Result<void> OpenEvents();
  Result<void> OpenChannels();
  Result<void> CatchSignals();

  void Post(const Event& event);
  void Decide();
  void Apply(const Event& event);
  void Advance(const Event& event);
  void LookWhoSaves(const Event& event);
  void Act(const StartAttempt&);
  void Act(const SignalWorkers& action);
  void Act(const AwaitSaving& action);
  void Act(const Sweep& action);
  void Act(const ArmDeadline&);
  void Act(const TellStuck&);

  void OnStarted(int local_rank);
  void OnEnded(const WorkerRecord& record);
  void OnTimerExpired(const TimerServer::Expired& expired);
  void OnTimeLimit();
  void WatchForStuck();
  void OnStuck(pid_t worker);
  int ExitCode() const;
  int EndSignal() const;
  void OnLinkReadable();
  void OnSignal(const SignalOrigin& origin);
  void StopGently(const SignalOrigin& origin);
  void StopAtOnce(int signal_number);
  void OnLifelineEnded();
  void OnGuardianLost();
  void ReapOrphans();
  void OnOutputProgress();

  void EndAttempt(const GroupState& next);
  Goodbye Ending() const;
  void FinishWhenShown();

  // Of a job of several nodes; in supervisor_nodes.cc.
  Result<void> OpenMembership();
  void StopByOrder(const StopWorkers& order);
  void NoteEnd(const WorkerRecord& record);
  void NoteFailure(const WorkerRecord& record);
  void NoteIdle();
  void TellPart(AttemptRecord record);
  std::function<void(AttemptRecord)> PartTeller();
  void ShowReport(const AttemptRecord& record);
  void NoteNodeLost(const std::string& text);
  void LeaveBy(int signal_number);
  void CloseBy(const std::string& text, int exit_code);

  Loop& loop_;
  const JobSpec& spec_;
  const GroupPolicy policy_;
  Incarnation& incarnation_;
  GuardianLink& link_ = incarnation_.link();
  MachineShare share_;
  GroupState state_ = incarnation_.FirstState();
  StopFilter stop_filter_;
  pid_t guardian_ = getppid();
  std::vector<Event> events_;  // to be decided on in the next turn
  Fd null_fd_;
  JobOutput output_;
  StdinSource input_{loop_, STDIN_FILENO};
  WorkerChannels channels_;
  AttemptReports reports_;
  bool impatient_ = false;  // asked twice: do not wait long for the terminal
  int exit_code_ = 0;
  bool workers_stopped_ = false;  // by Ctrl-Z
  Sweeper sweeper_;
  AttemptStore store_;
  std::optional<StuckWatch> stuck_watch_;
  SignalCatcher signals_;
  Timer decide_;
  Timer deadline_;
  Timer time_limit_;
  Timer flush_deadline_;
  std::unique_ptr<Poll> link_poll_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<Lifeline> lifeline_;
  Spawner spawner_;
  std::unique_ptr<Attempt> attempt_;
  NodePlace place_;                         // of the attempt, on several nodes
  std::optional<Cause> failure_;            // the first of the attempt here, likewise
  bool stopped_for_failure_ = false;        // elsewhere, likewise
  bool report_shown_ = false;               // on the last attempt, likewise
  std::unique_ptr<Membership> membership_;  // null: this node alone
};

}  // namespace rankrun::agent
