#include "base/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/process/exec_error.h"
#include "base/process/spawn_slots.h"
#include "base/refused_call.h"

// The C library's clone by its other name. ThreadSanitizer treats a call of
// `clone` as a fork. It would mark the parent as a forked child, too, because both
// share memory.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace rankrun {
namespace {

constexpr size_t kFailureSlot = kStatusPageFd + 1;
constexpr int kExecFailed = 127;
constexpr size_t kChildStackBytes = 32 * 1024;

// SpawnSpec in the form that the child needs: pointers only.
struct ChildPlan {
  const char* file;
  char* const* argv;
  char* const* envp;
  int slots[SpawnSlots::kCount];  // sources of descriptors 0 to 3 and the failure pipe
  int highest_slot;
  bool shares_descriptors;  // with its parent, until it unshares them
  pid_t parent;
  uint64_t changed_signals;
  const rlimit* open_files;                    // null: unchanged
  const rlimit* core_bytes;                    // null: unchanged
  const char* oom_score_adj;                   // null: unchanged
  const std::vector<unsigned long>& cpu_mask;  // empty: unchanged
};

// Sent by the child before it gives up.
struct Failure {
  enum class Step : int { kNone, kUnshare, kPrepare, kBind, kExec };
  Step step = Step::kNone;
  int number = 0;  // errno
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Marks functions that run in the child. The child uses its parent's memory,
// where a sanitizer would attribute its accesses to the parent. A macro because
// attributes cannot be named otherwise.
#define RANKRUN_IN_CHILD __attribute__((noinline, no_sanitize("thread", "address", "undefined")))

// Bypasses the C library's functions, which a sanitizer may have replaced.
template <typename... Arguments>
RANKRUN_IN_CHILD long Call(long number, Arguments... arguments) {
  return syscall(number, arguments...);
}

// Closes all descriptors except those for the program and the failure pipe.
// Does so before the exec: otherwise a hanging exec holds pipes open, while other
// starts wait for the end of these pipes. Kernels before 5.9 have no close_range; there,
// close-on-exec, which all our descriptors have, closes them.
RANKRUN_IN_CHILD void CloseOthers(const ChildPlan& plan) {
  bool has_page = plan.slots[kStatusPageFd] != Fd::kNone;
  unsigned first = has_page ? kStatusPageFd + 1 : kStatusPageFd;
  auto way_back = static_cast<unsigned>(plan.slots[kFailureSlot]);
  Call(SYS_close_range, first, way_back - 1, 0);
  Call(SYS_close_range, way_back + 1, ~0U, 0);
}

RANKRUN_IN_CHILD int ArrangeDescriptors(const ChildPlan& plan) {
  for (int target = 0; target <= kStatusPageFd; ++target) {
    if (plan.slots[target] == Fd::kNone) continue;
    if (Call(SYS_dup3, plan.slots[target], target, 0) < 0) return errno;
  }
  CloseOthers(plan);
  return 0;
}

// The kernel's struct sigaction.
struct Disposition {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

RANKRUN_IN_CHILD void ResetSignals(uint64_t changed) {
  Disposition standard{};  // SIG_DFL is null
  for (int number = 1; number < NSIG; ++number) {
    if ((changed >> (number - 1) & 1) == 0) continue;
    Call(SYS_rt_sigaction, number, &standard, nullptr, sizeof standard.mask);
  }
  uint64_t none = 0;
  Call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

RANKRUN_IN_CHILD bool BindToCpus(const std::vector<unsigned long>& mask) {
  if (mask.empty()) return true;
  return Call(SYS_sched_setaffinity, 0, mask.size() * sizeof mask[0], mask.data()) == 0;
}

[[noreturn]] RANKRUN_IN_CHILD void FailChild(const ChildPlan& plan, Failure::Step step,
                                             int number) {
  Failure failure{.step = step, .number = number};
  // The parent takes an empty closed pipe for success. If this write fails, it
  // sees a process that ended with this code.
  Call(SYS_write, plan.slots[kFailureSlot], &failure, sizeof failure);
  for (;;) Call(SYS_exit_group, kExecFailed);
}

// Sets the score of the calling process alone. The kernel does not change the
// score of a vfork's parent, although both share their memory.
RANKRUN_IN_CHILD void SetOomScore(const char* text) {
  long fd = Call(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  size_t size = 0;
  while (text[size] != '\0') ++size;
  // If the write fails, the OOM killer treats the worker like any other process.
  Call(SYS_write, fd, text, size);
  Call(SYS_close, fd);
}

// Runs in the child, on the parent's memory: system calls only, no return.
RANKRUN_IN_CHILD int RunChild(void* argument) {
  const ChildPlan& plan = *static_cast<const ChildPlan*>(argument);
  Call(SYS_setsid);
  Call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The parent may have died before prctl.
  if (Call(SYS_getppid) != plan.parent) FailChild(plan, Failure::Step::kPrepare, ESRCH);
  // Unshare before changing any descriptor. This copies only descriptors up to
  // the highest slot.
  if (plan.shares_descriptors &&
      Call(SYS_close_range, plan.highest_slot + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    FailChild(plan, Failure::Step::kUnshare, errno);
  }
  if (int number = ArrangeDescriptors(plan); number != 0) {
    FailChild(plan, Failure::Step::kPrepare, number);
  }
  if (plan.open_files != nullptr) {
    Call(SYS_prlimit64, 0, RLIMIT_NOFILE, plan.open_files, nullptr);
  }
  if (plan.core_bytes != nullptr) {
    Call(SYS_prlimit64, 0, RLIMIT_CORE, plan.core_bytes, nullptr);
  }
  if (plan.oom_score_adj != nullptr) SetOomScore(plan.oom_score_adj);
  if (!BindToCpus(plan.cpu_mask)) FailChild(plan, Failure::Step::kBind, errno);
  // Last, because this also unblocks the signals; no inherited handler may run
  // on the parent's memory.
  ResetSignals(plan.changed_signals);
  Call(SYS_execve, plan.file, plan.argv, plan.envp);
  FailChild(plan, Failure::Step::kExec, errno);
}

// Returns this process's limit with another soft limit.
std::optional<rlimit> LimitWith(std::optional<rlim_t> soft, decltype(RLIMIT_CORE) resource) {
  rlimit limit;
  if (!soft || getrlimit(resource, &limit) != 0) return std::nullopt;
  limit.rlim_cur = *soft;
  return limit;
}

// Forks like vfork, with a stack for the child. Blocks all signals, so that no
// handler runs in the child.
pid_t ForkAndExec(ChildPlan& plan) {
  alignas(16) char stack[kChildStackBytes];
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (plan.shares_descriptors ? CLONE_FILES : 0);
  pid_t pid = __clone(RunChild, stack + sizeof stack, flags, &plan);
  int failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = failure;
  return pid;
}

// Returns what the child wrote before it gave up; no failure if the exec closed
// the pipe.
Failure ReadFailure(int fd) {
  Failure failure;
  ssize_t count;
  do {
    count = read(fd, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  return count == sizeof failure ? failure : Failure{};
}

// Returns the descriptors of `spec`, by slot.
std::array<int, SpawnSlots::kCount> Sources(const SpawnSpec& spec, int way_back) {
  return {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd, spec.status_page_fd, way_back};
}

void AwaitEnd(pid_t pid) {
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

// False once the kernel or a sandbox has refused to share or to unshare descriptors.
std::atomic<bool> may_share_descriptors = true;

struct Start {
  pid_t pid;  // -1: fork failed
  Failure failure;
};

// Starts the child. Returns once the child has executed its program or has
// ended.
Start StartChild(ChildPlan& plan, const SpawnSpec& spec, const SpawnSlots& slots) {
  constexpr auto kPrepare = Failure::Step::kPrepare;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {-1, {kPrepare, errno}};
  Fd failure_read(ends[0]);
  Fd failure_write(ends[1]);
  auto sources = Sources(spec, failure_write.get());
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    bool wanted = sources[slot] != Fd::kNone;
    plan.slots[slot] = wanted ? slots.number(slot) : Fd::kNone;
    if (!wanted || slots.Fill(slot, sources[slot])) continue;
    int number = errno;
    slots.Clear();
    return {-1, {kPrepare, number}};
  }
  pid_t pid = ForkAndExec(plan);
  if (pid < 0 && plan.shares_descriptors && (errno == EINVAL || IsRefusedCall(errno))) {
    may_share_descriptors = plan.shares_descriptors = false;  // as in qemu-user
    pid = ForkAndExec(plan);
  }
  int number = errno;
  slots.Clear();
  failure_write.Reset();
  if (pid < 0) return {-1, {kPrepare, number}};
  return {pid, ReadFailure(failure_read.get())};
}

Error StartError(const SpawnSpec& spec, const Failure& failure) {
  if (failure.step == Failure::Step::kExec) return ExplainExecError(spec, failure.number);
  std::string what = "start " + spec.file;
  if (failure.step == Failure::Step::kBind) what += ": bind to CPUs " + FormatCpus(spec.cpus);
  return SystemError(what, failure.number);
}

}  // namespace

uint64_t ChangedSignals() {
  uint64_t changed = 0;
  struct sigaction action;
  for (int number = 1; number < NSIG; ++number) {
    bool known = sigaction(number, nullptr, &action) == 0;
    if (known && action.sa_handler != SIG_DFL) changed |= uint64_t{1} << (number - 1);
  }
  return changed;
}

Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec) {
  auto slots = SpawnSlots::Open();
  if (!slots) return std::move(slots).error().In("start " + spec.file);
  return SpawnProcess(spec, *slots);
}

Result<SpawnedProcess> SpawnProcess(const SpawnSpec& spec, const SpawnSlots& slots) {
  if (spec.before) spec.before();
  std::vector<char*> argv = Pointers(spec.arguments);
  std::vector<char*> envp = Pointers(spec.environment);
  std::optional<rlimit> open_files = LimitWith(spec.open_files, RLIMIT_NOFILE);
  std::optional<rlimit> core_bytes = LimitWith(spec.core_bytes, RLIMIT_CORE);
  std::vector<unsigned long> cpu_mask = CpuMask(spec.cpus);
  std::string oom_score = spec.oom_score_adj ? std::to_string(*spec.oom_score_adj) : "";
  ChildPlan plan{.file = spec.file.c_str(),
                 .argv = argv.data(),
                 .envp = envp.data(),
                 .slots = {},
                 .highest_slot = slots.highest(),
                 .shares_descriptors = may_share_descriptors,
                 .parent = getpid(),
                 .changed_signals = spec.changed_signals ? *spec.changed_signals : ChangedSignals(),
                 .open_files = open_files ? &*open_files : nullptr,
                 .core_bytes = core_bytes ? &*core_bytes : nullptr,
                 .oom_score_adj = spec.oom_score_adj ? oom_score.c_str() : nullptr,
                 .cpu_mask = cpu_mask};
  Start start = StartChild(plan, spec, slots);
  if (start.failure.step == Failure::Step::kUnshare) {
    AwaitEnd(start.pid);
    may_share_descriptors = plan.shares_descriptors = false;
    start = StartChild(plan, spec, slots);
  }
  Failure& failure = start.failure;
  if (start.pid < 0) return StartError(spec, failure);
  // The pid still belongs to this child, because only this code reaps our
  // children.
  auto handle = ProcessHandle::Open(start.pid);
  bool started = failure.step == Failure::Step::kNone;
  if (started && handle) return SpawnedProcess{.pid = start.pid, .handle = std::move(*handle)};
  if (started) kill(start.pid, SIGKILL);
  AwaitEnd(start.pid);
  if (started) return std::move(handle).error().In("start " + spec.file);
  return StartError(spec, failure);
}

}  // namespace rankrun
