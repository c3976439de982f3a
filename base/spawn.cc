#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace rankrun {
namespace {

constexpr int kFirstScratchFd = 10;
constexpr int kExecFailed = 127;

// SpawnSpec in the form the child needs: pointers only.
struct ChildPlan {
  const char* file;
  char* const* argv;
  char* const* envp;
  int fds[kStatusPageFd + 1];  // sources of descriptors 0..3, kNone for none
  pid_t parent;
  const rlimit* open_files;  // null: as it is
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Moves every source out of the way first: a source may have the number of
// another one's target.
int ArrangeDescriptors(const ChildPlan& plan) {
  int scratch[kStatusPageFd + 1];
  for (int target = 0; target <= kStatusPageFd; ++target) {
    scratch[target] = plan.fds[target];
    if (plan.fds[target] == Fd::kNone) continue;
    scratch[target] = fcntl(plan.fds[target], F_DUPFD_CLOEXEC, kFirstScratchFd);
    if (scratch[target] < 0) return errno;
  }
  for (int target = 0; target <= kStatusPageFd; ++target) {
    if (scratch[target] == Fd::kNone) continue;
    if (dup2(scratch[target], target) < 0) return errno;
  }
  bool has_page = plan.fds[kStatusPageFd] != Fd::kNone;
  // Old kernels lack the call. All of our own descriptors are close-on-exec.
  syscall(SYS_close_range, has_page ? kStatusPageFd + 1 : kStatusPageFd, ~0U, 0);
  return 0;
}

void ResetSignals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child, on the parent's memory: system calls only, no return.
// Returns errno to the parent through `failure`.
[[noreturn]] __attribute__((noinline, no_sanitize("thread", "address", "undefined"))) void RunChild(
    const ChildPlan& plan, volatile int& failure) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(kExecFailed);  // died before the line above
  failure = ArrangeDescriptors(plan);
  if (failure != 0) _exit(kExecFailed);
  if (plan.open_files != nullptr) setrlimit(RLIMIT_NOFILE, plan.open_files);
  // Last: an inherited handler must not run on the parent's memory.
  ResetSignals();
  execve(plan.file, plan.argv, plan.envp);
  failure = errno;
  _exit(kExecFailed);
}

std::optional<rlimit> OpenFilesLimit(const SpawnSpec& spec) {
  rlimit limit;
  if (!spec.open_files || getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  limit.rlim_cur = *spec.open_files;
  return limit;
}

// With all signals blocked, so that none runs a handler in the child.
pid_t ForkAndExec(const ChildPlan& plan, volatile int& failure) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork();
  if (pid == 0) RunChild(plan, failure);
  if (pid < 0) failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

std::optional<ProcessExit> Reap(idtype_t type, id_t id) {
  siginfo_t info{};
  int status;
  do {
    status = waitid(type, id, &info, WEXITED | WNOHANG);
  } while (status != 0 && errno == EINTR);
  if (status != 0 || info.si_pid == 0) return std::nullopt;
  return ProcessExit{.signaled = info.si_code != CLD_EXITED, .value = info.si_status};
}

}  // namespace

Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec) {
  std::vector<char*> argv = Pointers(spec.arguments);
  std::vector<char*> envp = Pointers(spec.environment);
  std::optional<rlimit> open_files = OpenFilesLimit(spec);
  ChildPlan plan{.file = spec.file.c_str(),
                 .argv = argv.data(),
                 .envp = envp.data(),
                 .fds = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd, spec.status_page_fd},
                 .parent = getpid(),
                 .open_files = open_files ? &*open_files : nullptr};
  volatile int failure = 0;
  pid_t pid = ForkAndExec(plan, failure);
  if (pid > 0 && failure != 0) {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
    }
  }
  if (failure != 0) return SystemError("start " + spec.file, failure);
  // Nobody else reaps our children, so the number is still this child's.
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    Error error = SystemError("watch " + spec.file, errno);
    kill(pid, SIGKILL);
    return error;
  }
  return SpawnedProcess{.pid = pid, .pidfd = std::move(pidfd)};
}

std::optional<ProcessExit> ReapByPidfd(int pidfd) {
  return Reap(P_PIDFD, static_cast<id_t>(pidfd));
}

std::optional<ProcessExit> ReapByPid(pid_t pid) { return Reap(P_PID, static_cast<id_t>(pid)); }

}  // namespace rankrun
