#include "base/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/exec_error.h"

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
  int failure_fd;              // where errno goes; closed by a good exec
  pid_t parent;
  const rlimit* open_files;                    // null: as it is
  const char* oom_score_adj;                   // null: as it is
  const std::vector<unsigned long>& cpu_mask;  // empty: as it is
};

// What the child says before it gives up.
struct Failure {
  enum class Step : int { kNone, kPrepare, kBind, kExec };
  Step step = Step::kNone;
  int number = 0;  // errno
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
  // Kernels before 5.11 lack this. All of our own descriptors are close-on-exec.
  syscall(SYS_close_range, has_page ? kStatusPageFd + 1 : kStatusPageFd, ~0U, CLOSE_RANGE_CLOEXEC);
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

bool BindToCpus(const std::vector<unsigned long>& mask) {
  if (mask.empty()) return true;
  return syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof mask[0], mask.data()) == 0;
}

[[noreturn]] void FailChild(int failure_fd, Failure::Step step, int number) {
  Failure failure{.step = step, .number = number};
  // The parent takes a pipe that closes without a word for success, but then a
  // process that ended with this code.
  if (write(failure_fd, &failure, sizeof failure) != sizeof failure) _exit(kExecFailed);
  _exit(kExecFailed);
}

// Of the calling process alone, though it runs on its parent's memory: the
// kernel spares the parent of a vfork.
__attribute__((no_sanitize("thread", "address", "undefined"))) void SetOomScore(const char* text) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  size_t size = 0;
  while (text[size] != '\0') ++size;
  // The worker is as good a victim as any then.
  if (write(fd, text, size) < 0) errno = 0;
  close(fd);
}

// Runs in the child, on the parent's memory: system calls only, no return.
[[noreturn]] __attribute__((noinline, no_sanitize("thread", "address", "undefined"))) void RunChild(
    const ChildPlan& plan) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(kExecFailed);  // died before the line above
  int failure_fd = fcntl(plan.failure_fd, F_DUPFD_CLOEXEC, kFirstScratchFd);
  if (failure_fd < 0) FailChild(plan.failure_fd, Failure::Step::kPrepare, errno);
  if (int number = ArrangeDescriptors(plan); number != 0) {
    FailChild(failure_fd, Failure::Step::kPrepare, number);
  }
  if (plan.open_files != nullptr) setrlimit(RLIMIT_NOFILE, plan.open_files);
  if (plan.oom_score_adj != nullptr) SetOomScore(plan.oom_score_adj);
  if (!BindToCpus(plan.cpu_mask)) FailChild(failure_fd, Failure::Step::kBind, errno);
  // Last: an inherited handler must not run on the parent's memory.
  ResetSignals();
  execve(plan.file, plan.argv, plan.envp);
  FailChild(failure_fd, Failure::Step::kExec, errno);
}

std::optional<rlimit> OpenFilesLimit(const SpawnSpec& spec) {
  rlimit limit;
  if (!spec.open_files || getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  limit.rlim_cur = *spec.open_files;
  return limit;
}

// With all signals blocked, so that none runs a handler in the child.
pid_t ForkAndExec(const ChildPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork();
  if (pid == 0) RunChild(plan);
  int failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = failure;
  return pid;
}

// What the child wrote before it gave up; nothing if the exec closed the pipe.
Failure ReadFailure(int fd) {
  Failure failure;
  ssize_t count;
  do {
    count = read(fd, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  return count == sizeof failure ? failure : Failure{};
}

Error StartError(const SpawnSpec& spec, const Failure& failure) {
  if (failure.step == Failure::Step::kExec) return ExplainExecError(spec, failure.number);
  std::string what = "start " + spec.file;
  if (failure.step == Failure::Step::kBind) what += ": bind to CPUs " + FormatCpus(spec.cpus);
  return SystemError(what, failure.number);
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
  if (spec.before) spec.before();
  std::string what = "start " + spec.file;
  std::vector<char*> argv = Pointers(spec.arguments);
  std::vector<char*> envp = Pointers(spec.environment);
  std::optional<rlimit> open_files = OpenFilesLimit(spec);
  std::vector<unsigned long> cpu_mask = CpuMask(spec.cpus);
  std::string oom_score = spec.oom_score_adj ? std::to_string(*spec.oom_score_adj) : "";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError(what, errno);
  Fd failure_read(ends[0]);
  Fd failure_write(ends[1]);
  ChildPlan plan{.file = spec.file.c_str(),
                 .argv = argv.data(),
                 .envp = envp.data(),
                 .fds = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd, spec.status_page_fd},
                 .failure_fd = failure_write.get(),
                 .parent = getpid(),
                 .open_files = open_files ? &*open_files : nullptr,
                 .oom_score_adj = spec.oom_score_adj ? oom_score.c_str() : nullptr,
                 .cpu_mask = cpu_mask};
  pid_t pid = ForkAndExec(plan);
  if (pid < 0) return SystemError(what, errno);
  failure_write.Reset();
  Failure failure = ReadFailure(failure_read.get());
  // Nobody else reaps our children, so the number is still this child's.
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  bool started = failure.step == Failure::Step::kNone;
  if (started && !pidfd) {
    failure = {.step = Failure::Step::kPrepare, .number = errno};
    kill(pid, SIGKILL);
  }
  if (started && pidfd) return SpawnedProcess{.pid = pid, .pidfd = std::move(pidfd)};
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return StartError(spec, failure);
}

std::optional<ProcessExit> ReapByPidfd(int pidfd) {
  return Reap(P_PIDFD, static_cast<id_t>(pidfd));
}

std::optional<ProcessExit> ReapByPid(pid_t pid) { return Reap(P_PID, static_cast<id_t>(pid)); }

}  // namespace rankrun
