#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt.h"
#include "agent/event_log.h"
#include "agent/guardian_link.h"
#include "agent/job_output.h"
#include "agent/job_spec.h"
#include "agent/lifeline.h"
#include "agent/stop_filter.h"
#include "agent/worker_group.h"
#include "base/spawner.h"
#include "base/uv_poll.h"
#include "base/uv_signal.h"
#include "base/uv_timer.h"
#include "store/server.h"

namespace rankrun::agent {

// Runs a job's workers on this node: turns exits, signals and deadlines into
// events of worker_group's Step and carries out its actions. Hosts the store
// in which the workers of an attempt meet.
// Thread: loop.
class Supervisor {
 public:
  // The text of a report on a failed attempt.
  using Reporter = std::function<std::string(const AttemptRecord&)>;

  // `loop`, `spec` and `link` outlive it.
  Supervisor(Loop& loop, const JobSpec& spec, GuardianLink& link, Reporter reporter);
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
  Result<void> CatchSignals();
  Result<void> FindAddresses();
  Result<void> OpenStore();
  void RenewStore();

  void Post(const Event& event);
  void Decide();
  void Apply(const Event& event);
  void Act(const StartAttempt&);
  void Act(const SignalWorkers& action);
  void Act(const Sweep& action);
  void Act(const ArmDeadline&);

  void OnStarted(int local_rank);
  void OnEnded(const WorkerRecord& record);
  void OnLinkReadable();
  void OnSignal(const SignalOrigin& origin);
  void OnLifelineEnded();
  void OnGuardianLost();
  void ReapOrphans();
  void OnOutputProgress();

  void EndAttempt(const GroupState& next);
  Goodbye Ending() const;
  void FinishWhenShown();

  Loop& loop_;
  const JobSpec& spec_;
  const GroupPolicy policy_;
  GuardianLink& link_;
  Reporter reporter_;
  MachineShare share_;
  GroupState state_;
  StopFilter stop_filter_;
  pid_t guardian_;
  std::vector<Event> events_;  // to be decided on in the next turn
  Fd null_fd_;
  JobOutput output_;
  bool sweeping_ = false;   // NothingLeft is owed
  int sweep_kills_ = 0;     // SIGKILLs to what this attempt left behind
  int open_reports_ = 0;    // being completed
  bool impatient_ = false;  // asked twice: do not wait long for the terminal
  int exit_code_ = 0;
  bool workers_stopped_ = false;  // by Ctrl-Z
  std::vector<store::BindAddress> addresses_;
  std::unique_ptr<store::Server> store_;
  std::vector<std::unique_ptr<rankrun::Signal>> signals_;
  Timer decide_;
  Timer deadline_;
  Timer flush_deadline_;
  std::unique_ptr<Poll> link_poll_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<Lifeline> lifeline_;
  Spawner spawner_;
  std::unique_ptr<Attempt> attempt_;
};

}  // namespace rankrun::agent
