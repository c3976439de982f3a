#include "agent/supervisor/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/guardian/debugger.h"
#include "agent/job/environment.h"
#include "agent/job/job_signals.h"
#include "agent/machine/worker_gpus.h"
#include "agent/preload/preloader.h"
#include "agent/process/descendants.h"
#include "agent/process/opted_out_processes.h"
#include "agent/report/event_log.h"
#include "agent/report/verdict.h"
#include "agent/supervisor/inspection.h"
#include "agent/worker/input_request.h"
#include "base/format.h"
#include "base/log.h"
#include "base/roll_call.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::hours kLastLease{1};
// Programs that fail for one reason end within this time, also with a core file of some size.
constexpr std::chrono::milliseconds kVictimGrace{500};

// Returns nothing if the job has none.
Result<std::unique_ptr<Preloader>> MakePreloader(const JobSpec& spec, int null_fd) {
  if (!spec.preload) return std::unique_ptr<Preloader>();
  return Preloader::Create({.modules = spec.preload->modules,
                            .environment = spec.environment,
                            .python_options = spec.preload->python_options,
                            .null_fd = null_fd});
}

}  // namespace

Supervisor::Supervisor(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Reporter reporter)
    : loop_(loop),
      spec_(spec),
      policy_{.workers = spec.workers,
              .shutdown_timeout = spec.shutdown_timeout,
              .save_timeout = spec.save_timeout,
              .stuck_timeout = spec.nodes ? spec.nodes->node_timeout : std::chrono::milliseconds(0),
              .continue_on_failure = spec.continue_on_failure,
              .victim_grace = kVictimGrace,
              .is_one_of_several = spec.nodes.has_value()},
      incarnation_(incarnation),
      output_(loop, spec, [this] { OnOutputProgress(); }),
      input_(loop, STDIN_FILENO, [this] { return IsInForeground(guardian_); }),
      reports_(
          loop, output_, std::move(reporter),
          {.on_complete =
               !spec.nodes
                   ? std::function<void(AttemptRecord)>()
                   : [this](AttemptRecord record) { membership_->SendReport(std::move(record)); },
           .on_shown = [this] { OnOutputProgress(); },
           .on_judged = [this](const AttemptRecord& record) { NoteCause(record); }}),
      sweeper_(
          loop,
          {.on_nothing_left = [this] { Post(NothingLeft{}); },
           .on_left = [this](const auto& pids,
                             int number) { event_log_->LeftBehind(pids, number); },
           .show = [this](const std::string& text) { output_.Say(text); },
           .helpers = [this] { return preloader_ ? preloader_->Processes() : std::set<pid_t>(); }}),
      store_(loop, spec,
             [this](pid_t worker) {
               auto local = attempt_ ? attempt_->LocalRankOf(worker) : std::nullopt;
               return local ? std::optional(place_.first_rank + *local) : std::nullopt;
             }),
      breakpoints_(loop, DebuggerName(), OnBreakpoints()),
      health_(loop, {.notice = spec.hang_notice, .timeout = spec.hang_timeout}, OnHealth()),
      decide_(loop, [this] { Decide(); }),
      deadline_(loop, [this] { Post(DeadlinePassed{}); }),
      time_limit_(loop, [this] { OnTimeLimit(); }),
      flush_deadline_(loop, [this] { loop_.Stop(); }),
      spawner_(loop),
      inspection_(std::make_unique<Inspection>(*this)) {}

Supervisor::~Supervisor() {
  if (preloader_) preloader_->End();
  SetLogSink({});
}

Result<void> Supervisor::Open() {
  if (auto opened = OpenEvents(); !opened) return opened;
  if (auto opened = OpenObservers(); !opened) return opened;
  if (auto enough = CheckGpus(spec_); !enough) return enough;
  auto share = ShareMachine(spec_);
  if (!share) return std::move(share).error();
  share_ = std::move(*share);
  if (auto opened = spec_.nodes ? OpenMembership() : OpenLocalCoordinator(); !opened) return opened;
  null_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd_) return SystemError("open /dev/null", errno);
  if (auto opened = output_.OpenLogs(incarnation_.record().folder); !opened) return opened;
  incarnation_.Note(spec_, state_.attempt, output_.logs());
  coordinator_->NoteState(state_);
  if (auto opened = OpenChannels(); !opened) return opened;
  auto preloader = MakePreloader(spec_, null_fd_.get());
  if (!preloader) return std::move(preloader).error();
  preloader_ = *std::move(preloader);
  auto poll = Poll::Open(loop_, link_.fd(), [this] { OnLinkReadable(); });
  if (!poll) return std::move(poll).error();
  link_poll_ = std::move(*poll);
  link_poll_->Start();
  loop_.Post([this] { OnLinkReadable(); });  // for messages that were put back
  if (auto caught = CatchSignals(); !caught) return caught;
  SetLogSink([this](std::string_view line) {
    if (loop_.IsOnLoop()) {
      output_.Say(line);
    } else {
      loop_.Post([this, text = std::string(line)] { output_.Say(text); });
    }
  });
  return {};
}

Result<void> Supervisor::OpenEvents() {
  auto log = EventLog::Open(loop_, spec_,
                            {.show = [this](std::string_view text) { output_.Say(text); },
                             .on_progress = [this] { OnOutputProgress(); },
                             .on_event = [this](const auto& event) { observers_->Note(event); }});
  if (!log) return std::move(log).error();
  event_log_ = std::move(*log);
  auto watched = Lifeline::WatchAll(
      loop_, spec_, [this](const std::string& program) { OnLifelineEnded(program); });
  if (!watched) return std::move(watched).error();
  lifelines_ = std::move(*watched);
  return {};
}

Result<void> Supervisor::OpenChannels() {
  auto may_be_new = [this](pid_t child) {
    return spawner_.pending() > 0 && !(attempt_ && attempt_->LocalRankOf(child));
  };
  WorkerChannels::Callbacks callbacks{
      .saves = {.on_saves = [this](WorkerSaves saves) { Post(saves); },
                .on_step = [this](const WorkerStep& step) { observers_->Note(step); }},
      .timer = {.on_expired = [this](const auto& expired) { OnTimerExpired(expired); },
                .may_be_new = may_be_new},
      .on_breakpoint = [this](const auto& notice) { breakpoints_.OnNotice(notice); }};
  return channels_.Open(loop_, spec_, output_.logs(), std::move(callbacks));
}

Result<void> Supervisor::CatchSignals() {
  EndSignals end_signals{0, spec_.heeds_interrupts};
  for (int number : spec_.end_signals) end_signals.bits |= uint64_t{1} << number;
  link_.Send(end_signals);
  if (spec_.heeds_interrupts) {
    for (int number : kInterrupts) {
      if ((end_signals.bits >> number & 1) != 0) signal(number, SIG_DFL);
    }
  }
  return signals_.Open(loop_, {.on_signal =
                                   [this](int number) {
                                     OnSignal({number, getpid(), kUnknownSender});
                                   },
                               .on_child = [this] { ReapOrphans(); }});
}

Goodbye Supervisor::Run() {
  if (incarnation_.is_first()) output_.Say(ThreadsNotice(spec_, share_));
  event_log_->JobStarted(guardian_, incarnation_.record());
  coordinator_->Begin();
  if (spec_.time_limit) time_limit_.Start(incarnation_.LeftOf(*spec_.time_limit));
  health_.WatchForStuck();
  inspection_->Begin();
  loop_.Run();
  if (preloader_) preloader_->End();
  if (membership_ != nullptr) link_.Send(Heartbeat{kLastLease});  // closing the logs may block
  channels_ = {};
  observers_.reset();
  inspection_.reset();
  output_.CloseLogs();
  return Ending();
}

void Supervisor::Post(const Event& event) {
  events_.push_back(event);
  decide_.Start(std::chrono::milliseconds(0));
}

// Runs in its own turn, so that no object dies inside its own callback.
void Supervisor::Decide() {
  while (!events_.empty()) {
    for (const Event& event : std::exchange(events_, {})) Apply(event);
  }
}

// Reads the status pages only now, because they send no notification.
void Supervisor::Apply(const Event& event) {
  if (SavingMatters(policy_, state_, event)) {
    for (const WorkerSaves& change : attempt_->TakeSavingChanges()) Advance(change);
  }
  Advance(event);
}

void Supervisor::Advance(const Event& event) {
  if (state_.over()) return;
  Transition transition = Step(policy_, state_, event, std::chrono::steady_clock::now());
  bool attempt_over = state_.phase == Phase::kSweeping && transition.next.phase != state_.phase &&
                      attempt_ != nullptr;
  if (attempt_over) EndAttempt();
  event_log_->Stepped(state_, transition.next);
  bool is_idle = transition.next.phase == Phase::kIdle && state_.phase == Phase::kSweeping;
  bool stops = transition.next.phase == Phase::kStopping && state_.phase == Phase::kRunning;
  state_ = transition.next;
  incarnation_.Note(spec_, state_.attempt, output_.logs());
  coordinator_->NoteState(state_);
  if (stops && !spec_.continue_on_failure) TellFailure();
  if (is_idle) NoteIdle();
  for (const Action& action : transition.actions) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  if (state_.over()) FinishWhenShown();
}

void Supervisor::Act(const StartAttempt&) {
  Attempt::Callbacks callbacks{
      .on_started = [this](int local_rank) { OnStarted(local_rank); },
      .on_ended = [this](const WorkerRecord& record, EndKind kind) { OnEnded(record, kind); }};
  Attempt::Context context{.loop = loop_,
                           .spec = spec_,
                           .spawner = spawner_,
                           .fork = {},
                           .output = output_,
                           .input = input_,
                           .share = share_,
                           .null_fd = null_fd_.get(),
                           .save_fifo = channels_.SavePathFor(place_.first_rank),
                           .timer_file = channels_.timer_path(),
                           .breakpoint_pipe = channels_.breakpoint_path()};
  if (preloader_) {
    preloader_->BeginAttempt();
    context.fork = [this](const SpawnSpec& worker) { return preloader_->Start(worker); };
  }
  attempt_ = std::make_unique<Attempt>(context, place_, std::move(callbacks));
  event_log_->AttemptStarted(state_.attempt, place_.master_port);
  attempt_->Start();
  health_.BeginAttempt();
}

void Supervisor::OnStarted(int local_rank) {
  event_log_->WorkerStarted(attempt_->workers()[static_cast<size_t>(local_rank)]->record());
  if (workers_stopped_) attempt_->Pass(SIGSTOP);  // Ctrl-Z came before the start
  Post(WorkerStarted{local_rank});
  ReapOrphans();  // those that ended while this start was pending
}

void Supervisor::OnEnded(const WorkerRecord& record, EndKind kind) {
  event_log_->WorkerEnded(record);
  if (record.failed() && spec_.continue_on_failure && state_.phase == Phase::kRunning) {
    output_.Say("rankrun: rank " + std::to_string(record.global_rank) + " (pid " +
                std::to_string(record.pid) +
                ") has failed; --continue-on-failure: the others go on\n");
  }
  if (!record.failed()) health_.NoteFinished();
  NoteEnd(record, kind);
  Post(WorkerEnded{record.local_rank, record.failed(), MayBeVictim(kind)});
  if (record.start_error) ReapOrphans();  // as after a start
}

void Supervisor::OnTimerExpired(const TimerServer::Expired& expired) {
  std::string owner = attempt_ ? attempt_->NoteTimer(expired) : "";
  if (!expired.is_suppressed) output_.Say("rankrun: " + DescribeExpired(expired, owner) + "\n");
}

void Supervisor::OnTimeLimit() {
  if (state_.over() || state_.stop_signal != 0) return;
  if (state_.phase == Phase::kSweeping && state_.has_succeeded()) return;  // in time
  output_.Say("rankrun: --timeout: the job has run for " + FormatSeconds(*spec_.time_limit) +
              ": stopping the workers within " + FormatSeconds(spec_.shutdown_timeout) + "\n");
  Post(TimeLimitReached{});
  CloseJob("the job's time (--timeout) is over", kExitTimedOut);
}

void Supervisor::Act(const SignalWorkers& action) {
  breakpoints_.Clear();
  if (action.local_rank) {
    attempt_->Signal(action.signal_number, *action.local_rank);
  } else {
    if (preloader_) preloader_->CancelStarts();
    attempt_->SignalAllBut(action.but_saving ? state_.saving : std::set<int>(),
                           action.signal_number);
  }
}

void Supervisor::Act(const AwaitSaving& action) {
  output_.Say("rankrun: " + RanksInWords({place_.first_rank + action.local_rank}) +
              " is saving: waiting up to " + FormatSeconds(policy_.save_timeout) + "\n");
}

void Supervisor::Act(const Sweep& action) {
  stacks_.Cancel();
  quiet_notice_.Cancel();
  if (inspection_) inspection_->CancelStacks();
  ReapOrphans();
  std::function<bool(pid_t)> spares;
  if (action.but_stopping) {
    spares = [this, number = action.signal_number](pid_t pid) {
      return attempt_ && attempt_->SparesLeftover(pid, number);
    };
  }
  sweeper_.Sweep(action.signal_number, std::move(spares));
}

void Supervisor::Act(const ArmDeadline&) {
  const TimePoint now = std::chrono::steady_clock::now();
  deadline_.Start(state_.deadline - now);
  stacks_.Arm(state_, now,
              [this] { return attempt_ ? attempt_->Running() : std::vector<pid_t>(); });
}

// Reaps adopted orphans, but none while a start is pending, because a worker whose
// start is not known yet looks like an orphan.
void Supervisor::ReapOrphans() {
  while (spawner_.pending() == 0) {
    siginfo_t info{};
    int status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
    if (status != 0 || info.si_pid == 0) break;
    if (!attempt_ || !attempt_->CheckExitOf(info.si_pid)) ReapByPid(info.si_pid);
  }
  sweeper_.Check();
}

void Supervisor::OnOutputProgress() {
  if (attempt_) attempt_->ResumeOutput();
  if (state_.over()) FinishWhenShown();
}

}  // namespace rankrun::agent
