#include "agent/guardian/debugger.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/guardian/lend_terminal.h"

namespace rankrun::agent {
namespace {

using Outcome = DebuggerReport::Outcome;

// Blocks SIGTTOU, by which the kernel stops a process in the background that changes the
// terminal.
class TerminalSignalBlocked {
 public:
  TerminalSignalBlocked() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &before_);
  }
  TerminalSignalBlocked(const TerminalSignalBlocked&) = delete;
  TerminalSignalBlocked& operator=(const TerminalSignalBlocked&) = delete;
  ~TerminalSignalBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Time for an exec: a file system may hang. The guardian does nothing else meanwhile.
constexpr int kExecMilliseconds = 5'000;

// Returns the number that the child writes when its exec fails; 0 if it succeeds; ETIMEDOUT if
// it does neither in time.
int ReadExecError(int fd) {
  pollfd ready{fd, POLLIN, 0};
  int count;
  do {
    count = poll(&ready, 1, kExecMilliseconds);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return ETIMEDOUT;
  int error_number = 0;
  const ssize_t size = read(fd, &error_number, sizeof error_number);
  return size == sizeof error_number ? error_number : 0;
}

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

std::string DebuggerName() {
  const char* name = std::getenv("RANKRUN_DEBUGGER");
  return name != nullptr && *name != '\0' ? name : "gdb";
}

std::variant<std::unique_ptr<Debugger>, DebuggerReport> Debugger::Start(
    const StartDebugger& request) {
  Fd terminal(open("/dev/tty", O_RDWR | O_CLOEXEC));
  termios modes{};
  if (!terminal || tcgetattr(terminal.get(), &modes) != 0) {
    return DebuggerReport{Outcome::kNoTerminal, 0};
  }
  if (tcgetpgrp(terminal.get()) != getpgrp()) return DebuggerReport{Outcome::kInBackground, 0};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return DebuggerReport{Outcome::kFailed, errno};
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::unique_ptr<Debugger> debugger(new Debugger(std::move(terminal), modes));
  const pid_t guardian = getpid();
  const pid_t pid = fork();
  if (pid < 0) return DebuggerReport{Outcome::kFailed, errno};
  if (pid == 0) debugger->Run(request, guardian, write_end.get());
  debugger->pid_ = pid;
  write_end.Reset();
  int error_number = ReadExecError(read_end.get());
  if (error_number == 0) return debugger;
  if (error_number == ETIMEDOUT) debugger->Abandon();
  const bool lends = request.pipe >= 0;
  return DebuggerReport{lends ? Outcome::kFailed : Outcome::kNoProgram, error_number};
}

// In the child.
void Debugger::Run(const StartDebugger& request, pid_t guardian, int report_fd) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(1);
  setpgid(0, 0);
  {
    TerminalSignalBlocked blocked;
    tcsetpgrp(terminal_.get(), getpid());
  }
  for (int fd = 0; fd <= 2; ++fd) dup2(terminal_.get(), fd);
  ResetSignals();
  int error_number = 0;
  if (request.pipe >= 0) {
    error_number = LendTerminal(request.process, request.pipe, report_fd);
  } else {
    const std::string name = DebuggerName();
    const std::string pid = std::to_string(request.process);
    execlp(name.c_str(), name.c_str(), "-q", "-p", pid.c_str(), "-ex", "continue", nullptr);
    error_number = errno;
  }
  _exit(write(report_fd, &error_number, sizeof error_number) < 0 ? 2 : 1);
}

Debugger::~Debugger() {
  if (pid_ == 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  TakeTerminalBack();
  waitpid(pid_, nullptr, 0);
}

// Does not wait for its end, which may never come.
void Debugger::Abandon() {
  kill(pid_, SIGKILL);
  TakeTerminalBack();
  pid_ = 0;
}

bool Debugger::HasEnded() {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
  if (info.si_pid == 0) return false;
  if (info.si_code == CLD_STOPPED) {
    waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);
    Resume();
    return false;
  }
  TakeTerminalBack();
  waitpid(std::exchange(pid_, 0), nullptr, 0);
  return true;
}

void Debugger::Resume() const {
  TerminalSignalBlocked blocked;
  if (tcgetpgrp(terminal_.get()) == getpgrp()) tcsetpgrp(terminal_.get(), pid_);
  // Elsewhere it would stop again at its next read.
  if (tcgetpgrp(terminal_.get()) == pid_) kill(-pid_, SIGCONT);
}

// Only from the debugger, which is not yet reaped: a shell may have taken it meanwhile.
void Debugger::TakeTerminalBack() const {
  TerminalSignalBlocked blocked;
  if (tcgetpgrp(terminal_.get()) != pid_) return;
  tcsetpgrp(terminal_.get(), getpgrp());
  tcsetattr(terminal_.get(), TCSANOW, &modes_);
}

}  // namespace rankrun::agent
