#include "agent/guardian/guardian.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/guardian/agent_process.h"
#include "agent/guardian/debugger.h"
#include "agent/guardian/guardian_signals.h"
#include "agent/guardian/ignored_interrupts.h"
#include "agent/guardian/lease_watch.h"
#include "agent/guardian/next_incarnation.h"
#include "agent/guardian/stop_filter.h"
#include "agent/job/job_signals.h"
#include "agent/output/log_directory.h"
#include "agent/process/descendants.h"
#include "agent/process/opted_out_processes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/net/listen_socket.h"
#include "base/process/open_files.h"
#include "base/process/spawn.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// Time that the agent has to end after a second stop request, a signal that
// ends the job at once, or its goodbye.
constexpr milliseconds kAgentStopTimeout{5'000};
// Pause before the next try to start an agent when the machine has no resources
// left.
constexpr milliseconds kForkPause{1'000};

void Say(const std::string& what) { WriteLastWords(2, "rankrun: " + what + "\n"); }

[[noreturn]] void Fail(const std::string& what) {
  Say(what);
  _exit(kExitInternalError);
}

// State of one agent, from its start to its end.
struct AgentRun {
  AgentProcess process;
  TimePoint started;
  int link_fd;  // kNone once the agent has closed its end
  std::optional<TimePoint> stop_deadline = {};
  LeaseWatch lease = {};
  std::string why_killed = {};  // by the guardian; empty: it was not
  std::optional<Goodbye> goodbye = {};
  std::optional<ProcessExit> exit = {};
};

class Guardian {
 public:
  struct Signals {
    Fd fd;  // of signalfd
    IgnoredInterrupts ignored;
  };

  Guardian(const GuardedJob& job, Signals signals, JobMemory memory,
           std::set<pid_t> preexisting_children)
      : job_(job),
        signals_(std::move(signals.fd)),
        ignored_(std::move(signals.ignored)),
        memory_(std::move(memory)),
        preexisting_children_(std::move(preexisting_children)) {
    if (auto opened = OpenTcpSocket()) liveness_socket_ = std::move(*opened);
  }

  [[noreturn]] void Run() {
    if (auto started = StartAgent(); !started) Fail(started.error().message);
    for (;;) {
      WatchAgent();
      debugger_.reset();
      SpareOptedOut();
      int killed = KillDescendants(preexisting_children_);
      if (run_->goodbye) End();
      RestartOrExit(killed);
    }
  }

 private:
  Result<void> StartAgent() {
    TimePoint now = std::chrono::steady_clock::now();
    auto forked = ForkAgent([this](GuardianLink link) {
      signals_.Reset();
      run_.reset();  // of the previous agent
      ignored_.Ignore();
      Incarnation incarnation(std::move(link), std::move(memory_), std::move(liveness_socket_));
      job_.agent_main(incarnation);
    });
    if (!forked) return std::move(forked).error();
    int link_fd = forked->link.fd();
    run_.emplace(AgentRun{std::move(*forked), now, link_fd});
    return {};
  }

  void WatchAgent() {
    while (!run_->exit) {
      pollfd waits[] = {{run_->process.handle.fd(), POLLIN, 0},
                        {signals_.get(), POLLIN, 0},
                        {run_->link_fd, POLLIN, 0}};
      poll(waits, 3, Timeout());
      TimePoint woken = std::chrono::steady_clock::now();
      run_->lease.OnRunning(woken);
      if (waits[1].revents != 0) ReadSignals();
      if (waits[2].revents != 0) ReadLink();
      KillIfOverdue(woken);
      // The agent's last message is in the socket before its exit shows here.
      if (run_->process.handle.HasEnded()) run_->exit = run_->process.handle.Reap();
    }
    ReadLink();
  }

  int Timeout() {
    if (!run_->why_killed.empty()) return -1;
    TimePoint now = std::chrono::steady_clock::now();
    run_->lease.OnRunning(now);
    std::optional<TimePoint> due = run_->stop_deadline;
    if (auto look = run_->lease.NextLook(now); look && (!due || *look < *due)) due = look;
    run_->lease.SleepUntil(due ? std::max(now, *due) : due);
    if (!due) return -1;
    auto left = std::chrono::ceil<milliseconds>(*due - now).count();
    return static_cast<int>(std::max<int64_t>(0, left));
  }

  void ArmStopDeadline() {
    if (!run_->stop_deadline) {
      run_->stop_deadline = std::chrono::steady_clock::now() + kAgentStopTimeout;
    }
  }

  // Judges the moment of the wake-up, because this process may have been stopped
  // since.
  void KillIfOverdue(TimePoint woken) {
    if (!run_->why_killed.empty()) return;
    if (run_->lease.Expired(woken)) ReadLink();  // a heartbeat may have arrived just now
    bool overdue = run_->stop_deadline && woken >= *run_->stop_deadline;
    if (!overdue && !run_->lease.Expired(woken)) return;
    run_->why_killed = overdue ? "had not ended " + FormatSeconds(kAgentStopTimeout) +
                                     " after the last request to stop"
                               : "had been silent for " + FormatSeconds(run_->lease.lease());
    run_->why_killed += " (" + DescribeState(run_->process.pid) + ")";
    kill(run_->process.pid, SIGKILL);
    if (!overdue) KillBelowNow();
  }

  // Kills the workers here, because an agent stuck in the kernel cannot die, so
  // that PDEATHSIG never fires.
  void KillBelowNow() {
    SpareOptedOut();
    for (pid_t pid : Descendants(preexisting_children_)) SignalDescendant(pid, SIGKILL);
  }

  void ReadSignals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        CheckDebugger();
        ReapOrphans();
      } else {
        OnSignal(number, static_cast<pid_t>(info.ssi_pid));
      }
    }
  }

  void OnSignal(int number, pid_t sender) {
    if (ignored_.Withholds({number, sender})) return;
    run_->process.link.Send(SignalNotice{number, sender});
    if (number == SIGTSTP) Stop();
    if (number == SIGCONT) run_->lease.Renew(std::chrono::steady_clock::now());
    if (number == SIGCONT && debugger_ != nullptr) debugger_->Resume();
    SignalMeaning meaning = MeaningOf(number, end_signals_);
    if (meaning == SignalMeaning::kPass) return;
    filter_.Count({number, getpid(), sender}, std::chrono::steady_clock::now());
    stop_signal_ = number;
    if (meaning == SignalMeaning::kKill || filter_.requests() >= 2) ArmStopDeadline();
  }

  // Stops this process; the agent stops the workers. Uses the signal's default
  // action because it does nothing where no shell can continue us; the workers
  // then go on.
  void Stop() {
    raise(SIGTSTP);
    ChangeMask(SIG_UNBLOCK, SIGTSTP);
    ChangeMask(SIG_BLOCK, SIGTSTP);
    run_->lease.Renew(std::chrono::steady_clock::now());
    run_->process.link.Send(SignalNotice{SIGCONT, getpid()});
  }

  void Start(const StartDebugger& request) {
    auto started = Debugger::Start(request);
    if (auto* report = std::get_if<DebuggerReport>(&started)) {
      run_->process.link.Send(*report);
    } else {
      debugger_ = std::move(std::get<std::unique_ptr<Debugger>>(started));
    }
  }

  void CheckDebugger() {
    if (debugger_ == nullptr || !debugger_->HasEnded()) return;
    ReportDebuggerEnd();
  }

  void ReportDebuggerEnd() {
    debugger_.reset();
    run_->process.link.Send(DebuggerReport{DebuggerReport::Outcome::kEnded, 0});
  }

  // Reaps children other than the agent: orphans that PID 1 adopts, and those
  // of `preexisting_children_`.
  void ReapOrphans() {
    for (;;) {
      siginfo_t info{};
      int status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
      bool is_agent = info.si_pid == run_->process.pid && !run_->exit;
      if (status != 0 || info.si_pid == 0 || is_agent) return;
      if (debugger_ != nullptr && debugger_->Is(info.si_pid)) {
        CheckDebugger();
        continue;
      }
      ReapByPid(info.si_pid);
    }
  }

  void ReadLink() {
    while (auto message = run_->process.link.Receive()) {
      if (std::holds_alternative<LinkClosed>(*message)) {
        run_->link_fd = Fd::kNone;  // poll() skips it; the handle reports the exit
        return;
      }
      TimePoint now = std::chrono::steady_clock::now();
      run_->lease.Renew(now);
      if (auto* heartbeat = std::get_if<Heartbeat>(&*message)) {
        run_->lease.Grant(heartbeat->lease, now);
      }
      if (auto* request = std::get_if<StartDebugger>(&*message)) Start(*request);
      bool ends_debugger = std::holds_alternative<EndDebugger>(*message);
      if (ends_debugger && debugger_ != nullptr) ReportDebuggerEnd();
      if (auto* goodbye = std::get_if<Goodbye>(&*message)) {
        run_->goodbye = *goodbye;
        ArmStopDeadline();
      }
      if (auto* signals = std::get_if<EndSignals>(&*message)) {
        end_signals_ = SignalsIn(signals->bits);
        for (const SignalNotice& early : ignored_.OnEndSignals(*signals)) {
          OnSignal(early.signal_number, early.sender);
        }
      }
    }
  }

  // Spares the opted-out processes and names them, unless the agent has named
  // them before its goodbye.
  void SpareOptedOut() {
    if (!HasChildren()) return;
    bool named = run_->goodbye.has_value();
    std::set<pid_t> kept =
        FindOptedOut(preexisting_children_, named ? kLongKeptPatience : kKeptPatience);
    for (pid_t pid : TopmostOf(kept)) {
      if (!named) Say(DescribeOptedOut(pid));
    }
    preexisting_children_.merge(kept);
  }

  [[noreturn]] void End() {
    if (run_->goodbye->end_signal != 0) EndBySignal(run_->goodbye->end_signal);
    _exit(run_->goodbye->exit_code);
  }

  // Handles an agent's death without a goodbye: starts the next one or exits.
  void RestartOrExit(int killed) {
    JobRecord last = memory_.Read();
    std::string rest = "; " + std::to_string(killed) +
                       " processes below it were killed, nothing of the job is left";
    std::string how = "the agent (pid " + std::to_string(run_->process.pid) + ") " + HowItEnded();
    ReadSignals();  // signals that arrived meanwhile
    NextIncarnation next = DecideNextIncarnation(last, quick_deaths_,
                                                 std::chrono::steady_clock::now() - run_->started);
    if (stop_signal_ != 0) {
      Say(how + rest);
      EndForGood(last, how);
    }
    if (!next.starts) {
      if (!next.words.empty()) rest += "; " + next.words;
      how += " in the middle of the job";
      Say(how + rest);
      EndForGood(last, how);
    }
    Say(how + rest + "; " + next.words);
    next.record.last_end = how + "; " + std::to_string(killed) + " processes below it were killed";
    quick_deaths_ = next.quick_deaths;
    if (auto written = memory_.Write(next.record); !written) Say(written.error().message);
    StartNext(next);
  }

  std::string HowItEnded() const {
    if (!run_->why_killed.empty()) return run_->why_killed + " and was killed";
    return run_->exit->signaled ? "was killed by " + SignalName(run_->exit->value)
                                : "ended with exit code " + std::to_string(run_->exit->value);
  }

  void StartNext(const NextIncarnation& next) {
    for (Duration pause = next.pause;; pause = kForkPause) {
      Pause(pause, next.record);
      auto started = StartAgent();
      if (started) return;
      Say(started.error().message + "; trying again in " + FormatSeconds(kForkPause));
    }
  }

  // Waits for the start of the next agent. A stop request ends the job here, without an agent.
  void Pause(Duration pause, const JobRecord& record) {
    TimePoint end = std::chrono::steady_clock::now() + pause;
    for (;;) {
      ReadSignals();
      if (stop_signal_ != 0) {
        Say(SignalName(stop_signal_) + ": not starting again");
        EndForGood(record, record.last_end);
      }
      auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0) return;
      pollfd wait{signals_.get(), POLLIN, 0};
      poll(&wait, 1, static_cast<int>(left));
    }
  }

  // Removes the folder of logs, because no agent will. Last, because a file system may hang.
  [[noreturn]] void EndForGood(const JobRecord& record, const std::string& why) {
    Goodbye end{.exit_code = kExitInternalError, .end_signal = stop_signal_};
    bool of_several_nodes = record.may_restart && !record.restarts;
    if (of_several_nodes && stop_signal_ == SIGTERM) end = {kExitDrained, 0};
    job_.on_end(record, end, why);
    WriteLastWords(2, LogDirectory(record.folder.value_or(JobFolder())).Close());
    if (end.end_signal != 0) EndBySignal(end.end_signal);
    _exit(end.exit_code);
  }

  const GuardedJob& job_;
  Fd signals_;
  IgnoredInterrupts ignored_;
  JobMemory memory_;
  // Agents listen there if the job has several nodes. Opened before the first agent, so that an
  // agent never has a port that this process does not keep. Empty: too many open files.
  Fd liveness_socket_;
  std::set<pid_t> preexisting_children_;
  std::optional<AgentRun> run_;         // the current agent; between two agents, the previous one
  std::unique_ptr<Debugger> debugger_;  // null: none runs
  int quick_deaths_ = 0;
  StopFilter filter_;
  std::vector<int> end_signals_{kEndSignals.begin(), kEndSignals.end()};
  int stop_signal_ = 0;  // last signal that asked for the end; 0: none
};

}  // namespace

void RunGuarded(const GuardedJob& job) {
  OpenStandardDescriptors();
  // A closed terminal or a file size limit must not end the supervisor. Workers
  // get the defaults back.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would discard exit statuses
  BecomeSubreaper();
  std::vector<pid_t> before;
  if (HasChildren()) before = Children();
  auto memory = JobMemory::Create(job.secret_variable);
  if (!memory) Fail(memory.error().message);
  IgnoredInterrupts ignored = IgnoredInterrupts::Take();
  sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  Fd signals(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) Fail(SystemError("watch for signals", errno).message);
  Guardian(job, {std::move(signals), std::move(ignored)}, std::move(*memory),
           {before.begin(), before.end()})
      .Run();
}

}  // namespace rankrun::agent
