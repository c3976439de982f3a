#include "agent/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/descendants.h"
#include "agent/job_signals.h"
#include "agent/kept.h"
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

[[noreturn]] void Fail(const std::string& what) {
  WriteLastWords(2, "rankrun: " + what + "\n");
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

class Guardian {
 public:
  Guardian(pid_t agent, Fd pidfd, Fd signals, GuardianLink link, std::set<pid_t> innocents)
      : agent_(agent),
        pidfd_(std::move(pidfd)),
        signals_(std::move(signals)),
        link_(std::move(link)),
        innocents_(std::move(innocents)) {}

  [[noreturn]] void Run() {
    while (!agent_exit_) {
      pollfd waits[] = {
          {pidfd_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {link_fd_, POLLIN, 0}};
      poll(waits, 3, Timeout());
      if (waits[1].revents != 0) ReadSignals();
      if (waits[2].revents != 0) ReadLink();
      if (patience_ends_ && std::chrono::steady_clock::now() >= *patience_ends_) KillAgent();
      // The agent's last message is in the socket before its end shows here.
      if (waits[0].revents != 0) agent_exit_ = ReapByPidfd(pidfd_.get());
    }
    ReadLink();
    End();
  }

 private:
  int Timeout() const {
    if (!patience_ends_ || killed_agent_) return -1;
    auto left = *patience_ends_ - std::chrono::steady_clock::now();
    return static_cast<int>(std::max<int64_t>(0, std::chrono::ceil<milliseconds>(left).count()));
  }

  void LosePatienceLater() {
    if (!patience_ends_) patience_ends_ = std::chrono::steady_clock::now() + kAgentPatience;
  }

  void KillAgent() {
    killed_agent_ = true;
    kill(agent_, SIGKILL);
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
    link_.Send(SignalNotice{number, sender});
    if (number == SIGTSTP) Stop();
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
    link_.Send(SignalNotice{SIGCONT, getpid()});
  }

  // Orphans that are not of the agent: those of PID 1, and of our innocents.
  void ReapStrangers() {
    for (;;) {
      siginfo_t info{};
      int status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
      if (status != 0 || info.si_pid == 0 || info.si_pid == agent_) return;
      ReapByPid(info.si_pid);
    }
  }

  void ReadLink() {
    while (auto message = link_.Receive()) {
      if (std::holds_alternative<LinkClosed>(*message)) {
        link_fd_ = Fd::kNone;  // poll() skips it; the pidfd tells the end
        return;
      }
      if (auto* goodbye = std::get_if<Goodbye>(&*message)) {
        goodbye_ = *goodbye;
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
    std::set<pid_t> kept = FindKept(innocents_, goodbye_ ? kLongKeptPatience : kKeptPatience);
    for (pid_t pid : TopmostOf(kept)) {
      if (!goodbye_) WriteLastWords(2, "rankrun: " + DescribeKept(pid) + "\n");
    }
    innocents_.merge(kept);
  }

  [[noreturn]] void End() {
    SpareTheKept();
    int killed = KillDescendants(innocents_);
    if (!goodbye_) EndWithoutGoodbye(killed);
    if (goodbye_->end_signal != 0) EndBySignal(goodbye_->end_signal);
    _exit(goodbye_->exit_code);
  }

  [[noreturn]] void EndWithoutGoodbye(int killed) {
    std::string rest = "; " + std::to_string(killed) +
                       " processes below it were killed, nothing of the job is left";
    std::string agent = "the agent (pid " + std::to_string(agent_) + ") ";
    if (killed_agent_) {
      WriteLastWords(2, "rankrun: " + agent + "had not ended " + FormatSeconds(kAgentPatience) +
                            " after the last request to stop and was killed" + rest + "\n");
      EndBySignal(stop_signal_);
    }
    std::string how = agent_exit_->signaled
                          ? "was killed by " + SignalName(agent_exit_->value)
                          : "ended with exit code " + std::to_string(agent_exit_->value);
    Fail(agent + how + " in the middle of the job" + rest);
  }

  pid_t agent_;
  Fd pidfd_;
  Fd signals_;
  GuardianLink link_;
  int link_fd_ = link_.fd();  // kNone once the agent has closed its end
  std::set<pid_t> innocents_;
  StopFilter filter_;
  std::vector<int> end_signals_{kEndSignals.begin(), kEndSignals.end()};
  int stop_signal_ = 0;  // the last one that asked for the end
  std::optional<TimePoint> patience_ends_;
  bool killed_agent_ = false;
  std::optional<Goodbye> goodbye_;
  std::optional<ProcessExit> agent_exit_;
};

}  // namespace

void RunGuarded(const std::function<void(GuardianLink)>& agent_main) {
  OpenStandardDescriptors();
  // A closed terminal or a file size limit must not end the supervisor. Workers
  // get the defaults back.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would lose the ends of children
  BecomeSubreaper();
  std::vector<pid_t> before;
  if (HasChildren()) before = Children();
  auto link = GuardianLink::CreatePair();
  if (!link) Fail(link.error().message);
  sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  pid_t agent = fork();
  if (agent < 0) Fail(SystemError("start the agent", errno).message);
  if (agent == 0) {
    setsid();
    prctl(PR_SET_NAME, "rankrun-agent");  // `killall rankrun` is to mean the guardian
    BecomeSubreaper();
    { GuardianLink guardians_end = std::move(link->first); }
    agent_main(std::move(link->second));
    _exit(kExitInternalError);  // only a goodbye ends the job well
  }
  { GuardianLink agents_end = std::move(link->second); }
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, agent, 0)));
  Fd signals(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!pidfd || !signals) Fail(SystemError("watch the agent", errno).message);
  Guardian(agent, std::move(pidfd), std::move(signals), std::move(link->first),
           {before.begin(), before.end()})
      .Run();
}

}  // namespace rankrun::agent
