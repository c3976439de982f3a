#include "agent/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/agent_process.h"
#include "agent/descendants.h"
#include "agent/job_signals.h"
#include "agent/kept.h"
#include "agent/lease_watch.h"
#include "agent/log_directory.h"
#include "agent/next_incarnation.h"
#include "agent/stop_filter.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/spawn.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// After a second request to stop, one to end at once, or its goodbye, the agent has this long.
constexpr milliseconds kAgentPatience{5'000};
// Before another try to start one, where the machine has nothing left for it.
constexpr milliseconds kForkPause{1'000};

void Say(const std::string& what) { WriteLastWords(2, "rankrun: " + what + "\n"); }

[[noreturn]] void Fail(const std::string& what) {
  Say(what);
  _exit(kExitInternalError);
}

// A closed descriptor 0, 1 or 2 would be taken by the next file we open.
void OpenStandardDescriptors() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

void AddUnlessIgnored(sigset_t& set, int signal_number) {
  if (!IsIgnored(signal_number)) sigaddset(&set, signal_number);
}

sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwardedSignals) AddUnlessIgnored(set, number);
  // PID 1 cannot stop itself, and nobody would continue its workers.
  if (getpid() != 1) AddUnlessIgnored(set, SIGTSTP);
  sigaddset(&set, SIGCONT);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGWINCH);  // our terminal's, which the agent's session does not get
  return set;
}

void ChangeMask(int how, int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  sigprocmask(how, &set, nullptr);
}

[[noreturn]] void EndBySignal(int signal_number) {
  if (getpid() == 1) _exit(128 + signal_number);  // the kernel shields PID 1 from itself
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  kill(getpid(), signal_number);
  ChangeMask(SIG_UNBLOCK, signal_number);
  _exit(128 + signal_number);
}

enum class Killed { kNo, kAfterStop, kAfterSilence };

// One agent, from its start to its end.
struct Life {
  AgentProcess process;
  TimePoint started;
  int link_fd;  // kNone once the agent has closed its end
  std::optional<TimePoint> patience_ends = {};
  LeaseWatch lease = {};
  Killed killed = Killed::kNo;
  std::optional<Goodbye> goodbye = {};
  std::optional<ProcessExit> exit = {};
};

class Guardian {
 public:
  Guardian(const std::function<void(Incarnation&)>& agent_main, Fd signals, JobMemory memory,
           std::set<pid_t> innocents)
      : agent_main_(agent_main),
        signals_(std::move(signals)),
        memory_(std::move(memory)),
        innocents_(std::move(innocents)) {}

  [[noreturn]] void Run() {
    if (auto started = StartAgent(); !started) Fail(started.error().message);
    for (;;) {
      WatchAgent();
      SpareTheKept();
      int killed = KillDescendants(innocents_);
      if (life_->goodbye) End();
      GoOn(killed);
    }
  }

 private:
  Result<void> StartAgent() {
    TimePoint now = std::chrono::steady_clock::now();
    auto forked = ForkAgent([this](GuardianLink link) {
      signals_.Reset();
      life_.reset();  // of the agent before
      Incarnation incarnation(std::move(link), std::move(memory_));
      agent_main_(incarnation);
    });
    if (!forked) return std::move(forked).error();
    int link_fd = forked->link.fd();
    life_.emplace(Life{std::move(*forked), now, link_fd});
    return {};
  }

  void WatchAgent() {
    while (!life_->exit) {
      pollfd waits[] = {{life_->process.pidfd.get(), POLLIN, 0},
                        {signals_.get(), POLLIN, 0},
                        {life_->link_fd, POLLIN, 0}};
      poll(waits, 3, Timeout());
      life_->lease.Woke(std::chrono::steady_clock::now());
      if (waits[1].revents != 0) ReadSignals();
      if (waits[2].revents != 0) ReadLink();
      KillIfOverdue();
      // The agent's last message is in the socket before its end shows here.
      if (waits[0].revents != 0) life_->exit = ReapByPidfd(life_->process.pidfd.get());
    }
    ReadLink();
  }

  int Timeout() {
    if (life_->killed != Killed::kNo) return -1;
    std::optional<TimePoint> due = life_->patience_ends;
    if (auto silent = life_->lease.deadline(); silent && (!due || *silent < *due)) due = silent;
    if (!due) return -1;
    TimePoint now = std::chrono::steady_clock::now();
    life_->lease.SleepUntil(std::max(now, *due));
    auto left = std::chrono::ceil<milliseconds>(*due - now).count();
    return static_cast<int>(std::max<int64_t>(0, left));
  }

  void LosePatienceLater() {
    if (!life_->patience_ends) {
      life_->patience_ends = std::chrono::steady_clock::now() + kAgentPatience;
    }
  }

  void KillIfOverdue() {
    if (life_->killed != Killed::kNo) return;
    TimePoint now = std::chrono::steady_clock::now();
    if (life_->lease.Expired(now)) ReadLink();  // it may have been heard just now
    bool impatient = life_->patience_ends && now >= *life_->patience_ends;
    if (!impatient && !life_->lease.Expired(now)) return;
    life_->killed = impatient ? Killed::kAfterStop : Killed::kAfterSilence;
    kill(life_->process.pid, SIGKILL);
    if (!impatient) KillBelowNow();
  }

  // The agent may hang in the kernel, where its death does not come, nor then
  // its workers'. Their time is over.
  void KillBelowNow() {
    SpareTheKept();
    for (pid_t pid : Descendants(innocents_)) kill(pid, SIGKILL);
  }

  void ReadSignals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        ReapStrangers();
      } else {
        OnSignal(number, static_cast<pid_t>(info.ssi_pid));
      }
    }
  }

  void OnSignal(int number, pid_t sender) {
    life_->process.link.Send(SignalNotice{number, sender});
    if (number == SIGTSTP) Stop();
    if (number == SIGCONT) life_->lease.Renew(std::chrono::steady_clock::now());
    SignalMeaning meaning = MeaningOf(number, end_signals_);
    if (meaning == SignalMeaning::kPass) return;
    filter_.Count({number, getpid(), sender}, std::chrono::steady_clock::now());
    stop_signal_ = number;
    if (meaning == SignalMeaning::kKill || filter_.requests() >= 2) LosePatienceLater();
  }

  // The agent stops the workers. The signal's own default, because it does
  // nothing where there is no shell to continue us; then the workers go on.
  void Stop() {
    raise(SIGTSTP);
    ChangeMask(SIG_UNBLOCK, SIGTSTP);
    ChangeMask(SIG_BLOCK, SIGTSTP);
    life_->lease.Renew(std::chrono::steady_clock::now());
    life_->process.link.Send(SignalNotice{SIGCONT, getpid()});
  }

  // Orphans that are not of the agent: those of PID 1, and of our innocents.
  void ReapStrangers() {
    for (;;) {
      siginfo_t info{};
      int status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
      bool is_agent = info.si_pid == life_->process.pid && !life_->exit;
      if (status != 0 || info.si_pid == 0 || is_agent) return;
      ReapByPid(info.si_pid);
    }
  }

  void ReadLink() {
    while (auto message = life_->process.link.Receive()) {
      if (std::holds_alternative<LinkClosed>(*message)) {
        life_->link_fd = Fd::kNone;  // poll() skips it; the pidfd tells the end
        return;
      }
      TimePoint now = std::chrono::steady_clock::now();
      life_->lease.Renew(now);
      if (auto* heartbeat = std::get_if<Heartbeat>(&*message)) {
        life_->lease.Grant(heartbeat->lease, now);
      }
      if (auto* goodbye = std::get_if<Goodbye>(&*message)) {
        life_->goodbye = *goodbye;
        LosePatienceLater();
      }
      if (auto* signals = std::get_if<EndSignals>(&*message)) {
        end_signals_.clear();
        for (int number : kForwardedSignals) {
          if ((signals->bits >> number & 1) != 0) end_signals_.push_back(number);
        }
      }
    }
  }

  // An agent that has said goodbye has named them.
  void SpareTheKept() {
    if (!HasChildren()) return;
    const bool named = life_->goodbye.has_value();
    std::set<pid_t> kept = FindKept(innocents_, named ? kLongKeptPatience : kKeptPatience);
    for (pid_t pid : TopmostOf(kept)) {
      if (!named) Say(DescribeKept(pid));
    }
    innocents_.merge(kept);
  }

  [[noreturn]] void End() {
    if (life_->goodbye->end_signal != 0) EndBySignal(life_->goodbye->end_signal);
    _exit(life_->goodbye->exit_code);
  }

  // After the agent's death without a goodbye: with the next one, or not.
  void GoOn(int killed) {
    const JobRecord last = memory_.Read();
    std::string rest = "; " + std::to_string(killed) +
                       " processes below it were killed, nothing of the job is left";
    std::string how = "the agent (pid " + std::to_string(life_->process.pid) + ") " + HowItEnded();
    ReadSignals();  // those that came while it died
    NextIncarnation next = DecideNextIncarnation(last, quick_deaths_,
                                                 std::chrono::steady_clock::now() - life_->started);
    if (stop_signal_ != 0) {
      Say(how + rest);
      EndForGood(last, stop_signal_);
    }
    if (!next.starts) {
      if (!next.words.empty()) rest += "; " + next.words;
      Say(how + " in the middle of the job" + rest);
      EndForGood(last, 0);
    }
    Say(how + rest + "; " + next.words);
    next.record.last_end = how + "; " + std::to_string(killed) + " processes below it were killed";
    quick_deaths_ = next.quick_deaths;
    if (auto written = memory_.Write(next.record); !written) Say(written.error().message);
    StartNext(next);
  }

  std::string HowItEnded() const {
    if (life_->killed == Killed::kAfterStop) {
      return "had not ended " + FormatSeconds(kAgentPatience) +
             " after the last request to stop and was killed";
    }
    if (life_->killed == Killed::kAfterSilence) {
      return "had been silent for " + FormatSeconds(life_->lease.lease()) + " and was killed";
    }
    return life_->exit->signaled ? "was killed by " + SignalName(life_->exit->value)
                                 : "ended with exit code " + std::to_string(life_->exit->value);
  }

  void StartNext(const NextIncarnation& next) {
    for (Duration pause = next.pause;; pause = kForkPause) {
      Pause(pause, next.record);
      auto started = StartAgent();
      if (started) return;
      Say(started.error().message + "; trying again in " + FormatSeconds(kForkPause));
    }
  }

  // Between two agents a request to stop needs nobody else.
  void Pause(Duration pause, const JobRecord& record) {
    TimePoint end = std::chrono::steady_clock::now() + pause;
    for (;;) {
      ReadSignals();
      if (stop_signal_ != 0) {
        Say(SignalName(stop_signal_) + ": not starting again");
        EndForGood(record, stop_signal_);
      }
      auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0) return;
      pollfd wait{signals_.get(), POLLIN, 0};
      poll(&wait, 1, static_cast<int>(left));
    }
  }

  // What no agent will remove any more: last, since a file system may hang.
  [[noreturn]] void EndForGood(const JobRecord& record, int end_signal) {
    if (record.folder) LogDirectory(*record.folder, LogDirectory::Layout::kFolderPerWorker);
    bool of_several_nodes = record.may_restart && !record.restarts;
    if (of_several_nodes && end_signal == SIGTERM) _exit(kExitDrained);
    if (end_signal != 0) EndBySignal(end_signal);
    _exit(kExitInternalError);
  }

  const std::function<void(Incarnation&)>& agent_main_;
  Fd signals_;
  JobMemory memory_;
  std::set<pid_t> innocents_;
  std::optional<Life> life_;  // the present one; the last one between two
  int quick_deaths_ = 0;
  StopFilter filter_;
  std::vector<int> end_signals_{kEndSignals.begin(), kEndSignals.end()};
  int stop_signal_ = 0;  // the last one that asked for the end
};

}  // namespace

void RunGuarded(const std::function<void(Incarnation&)>& agent_main) {
  OpenStandardDescriptors();
  // A closed terminal or a file size limit must not end the supervisor. Workers
  // get the defaults back.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would lose the ends of children
  BecomeSubreaper();
  std::vector<pid_t> before;
  if (HasChildren()) before = Children();
  auto memory = JobMemory::Create();
  if (!memory) Fail(memory.error().message);
  sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  Fd signals(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) Fail(SystemError("watch for signals", errno).message);
  Guardian(agent_main, std::move(signals), std::move(*memory), {before.begin(), before.end()})
      .Run();
}

}  // namespace rankrun::agent
