#include "agent/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/descendants.h"
#include "agent/evidence.h"
#include "agent/guardian.h"
#include "agent/job_signals.h"
#include "agent/worker_gpus.h"
#include "base/format.h"
#include "base/log.h"
#include "base/uv_loop.h"

namespace rankrun::agent {
namespace {

// How long the last output may wait at the end of a job for its reader, who may
// be a person with a pager; after a request to stop, and after a second one.
constexpr std::chrono::seconds kFlushPatience{300};
constexpr std::chrono::seconds kFlushPatienceStopped{10};
constexpr std::chrono::seconds kFlushPatienceKilled{1};

// Leaves descriptors for the workers and for looking after them: clients must
// not be able to take them all.
size_t ConnectionsWithin(size_t wanted, int workers) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  constexpr size_t kForEachWorker = 10;
  size_t ours = 32 + kForEachWorker * static_cast<size_t>(workers);
  return std::min(wanted, limit.rlim_cur > ours + 8 ? limit.rlim_cur - ours : 8);
}

void AddOnce(const SocketAddress& address, std::vector<store::BindAddress>& addresses) {
  bool known = std::ranges::any_of(addresses, [&](const store::BindAddress& other) {
    return other.address.ToString() == address.ToString();
  });
  if (!known) addresses.push_back({.address = address});
}

}  // namespace

Supervisor::Supervisor(Loop& loop, const JobSpec& spec, GuardianLink& link, Reporter reporter)
    : loop_(loop),
      spec_(spec),
      policy_{.workers = spec.workers,
              .max_restarts = spec.max_restarts,
              .shutdown_timeout = spec.shutdown_timeout},
      link_(link),
      reporter_(std::move(reporter)),
      guardian_(getppid()),
      output_(loop, spec, [this] { OnOutputProgress(); }),
      decide_(loop, [this] { Decide(); }),
      deadline_(loop, [this] { Post(DeadlinePassed{}); }),
      flush_deadline_(loop, [this] { loop_.Stop(); }),
      spawner_(loop) {}

Supervisor::~Supervisor() { SetLogSink({}); }

Result<void> Supervisor::Open() {
  if (auto opened = OpenEvents(); !opened) return opened;
  if (auto enough = CheckGpus(spec_); !enough) return enough;
  auto share = ShareMachine(spec_);
  if (!share) return std::move(share).error();
  share_ = std::move(*share);
  if (auto found = FindAddresses(); !found) return found;
  if (auto opened = OpenStore(); !opened) return opened;
  null_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd_) return SystemError("open /dev/null", errno);
  if (auto opened = output_.OpenLogs(); !opened) return opened;
  auto poll = Poll::Open(loop_, link_.fd(), [this] { OnLinkReadable(); });
  if (!poll) return std::move(poll).error();
  link_poll_ = std::move(*poll);
  link_poll_->Start();
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
                             .on_progress = [this] { OnOutputProgress(); }});
  if (!log) return std::move(log).error();
  event_log_ = std::move(*log);
  if (!spec_.lifeline) return {};
  auto watched = Lifeline::Watch(loop_, *spec_.lifeline, [this] { OnLifelineEnded(); });
  if (!watched) return std::move(watched).error();
  lifeline_ = std::move(*watched);
  return {};
}

Result<void> Supervisor::CatchSignals() {
  auto catch_one = [this](int number, std::function<void()> caught) -> Result<void> {
    if (IsIgnored(number)) return {};
    auto signal = rankrun::Signal::Catch(loop_, number, std::move(caught));
    if (!signal) return std::move(signal).error();
    signals_.push_back(std::move(*signal));
    return {};
  };
  for (int number : kEndSignals) {
    auto caught = catch_one(number, [this, number] {
      OnSignal({number, getpid(), kUnknownSender});
    });
    if (!caught) return caught;
  }
  for (int number : kPassedSignals) {
    auto caught = catch_one(number, [this, number] {
      OnSignal({number, getpid(), kUnknownSender});
    });
    if (!caught) return caught;
  }
  if (auto caught = catch_one(SIGCHLD, [this] { ReapOrphans(); }); !caught) return caught;
  // The guardian blocked them for both of us until there were handlers.
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  return {};
}

// Once: the look-up of a name may block for long.
Result<void> Supervisor::FindAddresses() {
  addresses_.push_back({.address = *SocketAddress::FromNumeric("127.0.0.1", 0)});
  addresses_.push_back({.address = *SocketAddress::FromNumeric("::1", 0), .optional = true});
  if (!spec_.master_addr_typed) return {};
  auto found = SocketAddress::Resolve(spec_.master_addr, 0);
  if (!found) {
    return Error{ErrorCode::kInvalid,
                 spec_.master_addr_origin + " " + spec_.master_addr + ": " + found.error().message};
  }
  for (const SocketAddress& address : *found) AddOnce(address, addresses_);
  return {};
}

Result<void> Supervisor::OpenStore() {
  store::ServerOptions options;
  options.addresses = addresses_;
  for (auto& bind : options.addresses) {
    bind.address = bind.address.WithPort(spec_.master_port.value_or(0));
  }
  options.admission.connections = ConnectionsWithin(options.admission.connections, spec_.workers);
  if (spec_.store_max_value) options.limits.AllowValues(*spec_.store_max_value);
  auto server = store::Server::Listen(loop_, std::move(options));
  if (server) {
    store_ = std::move(*server);
    return {};
  }
  std::string typed;  // what to blame
  if (spec_.master_addr_typed) typed = spec_.master_addr_origin + " " + spec_.master_addr;
  if (spec_.master_port)
    typed = spec_.master_port_origin + " " + std::to_string(*spec_.master_port);
  if (typed.empty()) return std::move(server).error();
  return Error{ErrorCode::kInvalid, typed + ": " + server.error().message};
}

// Every attempt gets an empty store. A port that the user typed stays; else
// the attempt gets its own, so that stragglers of the last one cannot find it.
void Supervisor::RenewStore() {
  if (state_.attempt == 0) return;  // Open made it
  if (!spec_.master_port) {
    std::unique_ptr<store::Server> old = std::move(store_);
    auto opened = OpenStore();
    if (opened) return;
    LogWarn(opened.error().message + "; the store stays at port " + std::to_string(old->port()));
    store_ = std::move(old);
  }
  store_->Reset();
}

Goodbye Supervisor::Run() {
  if (std::string notice = ThreadsNotice(spec_, share_); !notice.empty()) output_.Say(notice);
  event_log_->JobStarted(guardian_);
  Post(Begin{});
  loop_.Run();
  output_.CloseLogs();
  return Ending();
}

Goodbye Supervisor::Ending() const {
  return {.exit_code = exit_code_,
          .end_signal = state_.phase == Phase::kStopped ? state_.stop_signal : 0};
}

void Supervisor::Post(const Event& event) {
  events_.push_back(event);
  decide_.Start(std::chrono::milliseconds(0));
}

// In a turn of its own: no object dies inside its own callback.
void Supervisor::Decide() {
  while (!events_.empty()) {
    for (const Event& event : std::exchange(events_, {})) Apply(event);
  }
}

void Supervisor::Apply(const Event& event) {
  if (state_.over()) return;
  Transition transition = Step(policy_, state_, event, std::chrono::steady_clock::now());
  bool attempt_over = state_.phase == Phase::kSweeping && transition.next.phase != state_.phase &&
                      attempt_ != nullptr;
  if (attempt_over) EndAttempt(transition.next);
  event_log_->Stepped(state_, transition.next);
  state_ = transition.next;
  for (const Action& action : transition.actions) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  if (state_.over()) FinishWhenShown();
}

void Supervisor::Act(const StartAttempt&) {
  RenewStore();
  Attempt::Callbacks callbacks{.on_started = [this](int local_rank) { OnStarted(local_rank); },
                               .on_ended = [this](const WorkerRecord& record) { OnEnded(record); }};
  Attempt::Surroundings surroundings{.loop = loop_,
                                     .spec = spec_,
                                     .spawner = spawner_,
                                     .output = output_,
                                     .share = share_,
                                     .null_fd = null_fd_.get()};
  attempt_ = std::make_unique<Attempt>(surroundings, state_.attempt, std::move(callbacks));
  event_log_->AttemptStarted(state_.attempt, store_->port());
  attempt_->Start(store_->port());
}

void Supervisor::OnStarted(int local_rank) {
  event_log_->WorkerStarted(attempt_->record(local_rank));
  if (workers_stopped_) attempt_->Pass(SIGSTOP);  // Ctrl-Z came before it
  Post(WorkerStarted{local_rank});
}

void Supervisor::OnEnded(const WorkerRecord& record) {
  event_log_->WorkerEnded(record);
  Post(WorkerEnded{record.failed()});
}

void Supervisor::Act(const SignalWorkers& action) {
  if (action.local_rank) {
    attempt_->Signal(action.signal_number, *action.local_rank);
  } else {
    attempt_->Signal(action.signal_number);
  }
}

void Supervisor::Act(const Sweep& action) {
  sweeping_ = true;
  ReapOrphans();
  if (!sweeping_) return;
  // What lives on after a SIGKILL is worth a word.
  LogLevel level = sweep_kills_ > 0 ? LogLevel::kWarn : LogLevel::kInfo;
  if (action.signal_number == SIGKILL) sweep_kills_ += 1;
  std::vector<pid_t> left = Descendants();
  event_log_->LeftBehind(left, action.signal_number);
  for (pid_t pid : left) {
    if (LogEnabled(level)) {
      Log(level, "ending what the workers left behind: " + DescribeProcess(pid) + ", by " +
                     SignalName(action.signal_number));
    }
    kill(pid, action.signal_number);
    kill(pid, SIGCONT);
  }
}

void Supervisor::Act(const ArmDeadline&) {
  deadline_.Start(state_.deadline - std::chrono::steady_clock::now());
}

void Supervisor::OnLinkReadable() {
  while (auto message = link_.Receive()) {
    if (std::holds_alternative<LinkClosed>(*message)) OnGuardianLost();
    if (auto* notice = std::get_if<SignalNotice>(&*message)) {
      OnSignal({notice->signal_number, guardian_, notice->sender});
    }
  }
}

void Supervisor::OnSignal(const SignalOrigin& origin) {
  int number = origin.signal_number;
  if (number == SIGTSTP) number = SIGSTOP;  // the workers' sessions have no terminal
  if (!EndsJob(number)) {
    workers_stopped_ = number == SIGSTOP || (workers_stopped_ && number != SIGCONT);
    if (attempt_) attempt_->Pass(number);
    return;
  }
  if (!stop_filter_.Count(origin, std::chrono::steady_clock::now())) return;
  impatient_ = stop_filter_.requests() >= 2;
  if (state_.over()) {
    impatient_ = true;
    FinishWhenShown();
    return;
  }
  if (stop_filter_.requests() == 1) {
    output_.Say("rankrun: " + SignalName(number) + ": stopping the workers, within " +
                FormatSeconds(spec_.shutdown_timeout) + "; a second signal kills them at once\n");
  }
  Post(StopRequested{number});
}

void Supervisor::OnLifelineEnded() {
  if (stop_filter_.requests() > 0) return;  // it often comes with a signal
  output_.Say("rankrun: --lifeline: whoever started this job has ended\n");
  OnSignal({SIGTERM, getpid(), kUnknownSender});
}

// Nobody is left to report to: end everything, now. The workers first, which
// needs no descriptor.
void Supervisor::OnGuardianLost() {
  spawner_.Abandon();
  if (attempt_) attempt_->Signal(SIGKILL);
  store_.reset();
  KillDescendants({});
  output_.CloseLogs();
  _exit(kExitInternalError);
}

// Reaps adopted orphans. A child whose start is not yet known to us might look
// like one, so it waits for those.
void Supervisor::ReapOrphans() {
  while (spawner_.pending() == 0) {
    siginfo_t info{};
    int status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
    if (status != 0 || info.si_pid == 0) break;
    bool is_worker = attempt_ != nullptr && attempt_->CheckExitOf(info.si_pid);
    if (!is_worker) ReapByPid(info.si_pid);
  }
  if (sweeping_ && !HasChildren()) {
    sweeping_ = false;
    Post(NothingLeft{});
  }
}

void Supervisor::OnOutputProgress() {
  if (attempt_) attempt_->ResumeOutput();
  if (state_.over()) FinishWhenShown();
}

void Supervisor::EndAttempt(const GroupState& next) {
  AttemptRecord record = attempt_->TakeRecord();
  attempt_.reset();
  sweep_kills_ = 0;
  const WorkerRecord& cause = record.workers[record.cause];
  // Workers that somebody asked to stop have not failed, one that had failed
  // before has.
  if (!cause.failed() || (next.phase == Phase::kStopped && cause.sent_signal != 0)) return;
  record.restarts = next.phase == Phase::kRunning;
  record.stop_signal = next.stop_signal;
  if (next.phase == Phase::kFailed) {
    exit_code_ = ExitCodeOf(cause);
    record.parent_error_file = ParentErrorFile(spec_.environment);
  }
  if (record.restarts) event_log_->Restart(record, Duration::zero());
  if (LogDirectory* logs = output_.logs()) logs->Keep();
  open_reports_ += 1;
  CompleteRecord(loop_, output_.logs(), std::move(record), [this](const AttemptRecord& complete) {
    open_reports_ -= 1;
    std::string text = reporter_(complete);
    event_log_->Report(complete, text);
    output_.Say(text);
    if (state_.over()) FinishWhenShown();
  });
}

void Supervisor::FinishWhenShown() {
  if (open_reports_ == 0) event_log_->JobEnded(Ending());
  if (open_reports_ == 0 && output_.idle() && event_log_->written()) {
    loop_.Stop();
    return;
  }
  bool asked = stop_filter_.requests() > 0;
  flush_deadline_.Start(impatient_ ? kFlushPatienceKilled
                        : asked    ? kFlushPatienceStopped
                                   : kFlushPatience);
}

}  // namespace rankrun::agent
