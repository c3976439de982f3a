#include "agent/stacks/helper/snapshot.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <thread>

#include "agent/stacks/helper/proc_facts.h"
#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {
namespace {

using Clock = std::chrono::steady_clock;

// Time for threads to stop: for the first one, for the others, which hold up the first, and for
// the others while the machine is busy. A thread in the kernel may never stop.
constexpr std::chrono::milliseconds kFirstWait{500};
constexpr std::chrono::milliseconds kWait{25};
constexpr std::chrono::milliseconds kBusyWait{600};
constexpr std::chrono::milliseconds kMaxLook{20};
constexpr size_t kMaxStackBytes = 128 * 1024;  // copied of each thread
constexpr size_t kMaxStacksBytes = 8 << 20;    // of all threads

long Trace(int request, pid_t tid, void* data) {
  return ptrace(static_cast<__ptrace_request>(request), tid, nullptr, data);
}

void ReadRegisters(ThreadSnapshot& thread) {
  user_regs_struct all{};
  iovec part{&all, sizeof all};
  if (ptrace(PTRACE_GETREGSET, thread.tid, NT_PRSTATUS, &part) != 0) return;
#if defined(__x86_64__)
  thread.registers = {all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi,
                      all.rbp, all.rsp, all.r8,  all.r9,  all.r10, all.r11,
                      all.r12, all.r13, all.r14, all.r15, all.rip};
  thread.pc = all.rip;
  thread.thread_pointer = all.fs_base;
  constexpr uint64_t kRedZone = 128;
  thread.stack_begin = all.rsp - kRedZone;
#elif defined(__aarch64__)
  thread.registers.assign(std::begin(all.regs), std::end(all.regs));
  thread.registers.push_back(all.sp);
  thread.pc = all.pc;
  thread.stack_begin = all.sp;
#else
#error "stacks: this processor is not known"
#endif
}

// The threads of a process under ptrace, by the thread that has created this.
class Tracer {
 public:
  explicit Tracer(pid_t pid) : pid_(pid) {}

  // Returns 0 or errno. Threads of which it cannot say whether they have stopped are running.
  int StopAll() {
    deadline_ = Clock::now() + kFirstWait;
    size_t known = SIZE_MAX;
    // Threads that are started meanwhile are found by a second look.
    while (known != signals_.size() + running_.size() && Clock::now() < deadline_) {
      known = signals_.size() + running_.size();
      if (int error = Seize(); error != 0) return error;
      Await();
    }
    return 0;
  }
  // When the first thread has stopped; nothing if none has.
  std::optional<Clock::time_point> stopped() const { return stopped_; }

  std::vector<ThreadSnapshot> Copy() const {
    std::vector<ThreadSnapshot> threads;
    const ProcessMemory memory(pid_);
    const size_t bytes =
        std::min(kMaxStackBytes, kMaxStacksBytes / std::max<size_t>(1, signals_.size()));
    for (const auto& [tid, signal] : signals_) {
      ThreadSnapshot thread{.tid = tid};
      ReadRegisters(thread);
      thread.stack.resize(bytes);
      thread.stack.resize(memory.ReadSome(thread.stack_begin, thread.stack));
      thread.stack.shrink_to_fit();
      threads.push_back(std::move(thread));
    }
    return threads;
  }

  // A signal that has stopped a thread on its way is delivered.
  void LetGo() {
    for (const auto& [tid, signal] : signals_) {
      Trace(PTRACE_DETACH, tid, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
    }
  }

  size_t running() const { return running_.size(); }

 private:
  int Seize() {
    for (pid_t tid : ThreadsOf(pid_)) {
      const bool is_known = signals_.contains(tid) || std::ranges::count(running_, tid) > 0;
      if (is_known || signals_.size() + running_.size() >= kMaxStackThreads) continue;
      if (Trace(PTRACE_SEIZE, tid, nullptr) != 0) {
        const int error = errno;  // EPERM for threads that have ended, too
        if (error == ESRCH || HasEnded(tid)) continue;
        return error;
      }
      Trace(PTRACE_INTERRUPT, tid, nullptr);
      running_.push_back(tid);
    }
    return 0;
  }

  bool HasEnded(pid_t tid) const {
    const char state = StateOfThread(pid_, tid);
    return state == 'Z' || state == 'X' || state == '?';
  }

  void Await() {
    for (;;) {
      std::erase_if(running_, [this](pid_t tid) { return HasStopped(tid); });
      if (running_.empty() || Clock::now() >= deadline_) return;
      if (stopped_ && Clock::now() >= *stopped_ + kWait && OnlyTheKernelHoldsThem()) return;
      constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};
      nanosleep(&kPause, nullptr);
    }
  }

  bool OnlyTheKernelHoldsThem() const {
    return std::ranges::all_of(running_,
                               [this](pid_t tid) { return StateOfThread(pid_, tid) == 'D'; });
  }

  // Also true for a thread that has ended.
  bool HasStopped(pid_t tid) {
    int status = 0;
    const pid_t found = waitpid(tid, &status, __WALL | WNOHANG);
    if (found == 0) return false;
    if (found < 0 || !WIFSTOPPED(status)) return true;
    if (!stopped_) {
      stopped_ = Clock::now();
      deadline_ = *stopped_ + kBusyWait;
    }
    const bool is_delivery = status >> 16 == 0;
    signals_[tid] = is_delivery ? WSTOPSIG(status) : 0;
    return true;
  }

  const pid_t pid_;
  std::map<pid_t, int> signals_;  // to be delivered, by stopped thread; 0: none
  std::vector<pid_t> running_;    // seized, not yet stopped
  Clock::time_point deadline_;
  std::optional<Clock::time_point> stopped_;
};

Snapshot Take(pid_t pid, const std::function<void(std::function<bool()>)>& look) {
  Snapshot snapshot;
  Tracer tracer(pid);
  snapshot.error = tracer.StopAll();
  if (snapshot.error == 0 && tracer.stopped()) {
    snapshot.threads = tracer.Copy();
    look([deadline = Clock::now() + kMaxLook] { return Clock::now() >= deadline; });
  }
  tracer.LetGo();
  snapshot.running = tracer.running();
  const auto begin = tracer.stopped().value_or(Clock::now());
  snapshot.stopped = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  return snapshot;
}

}  // namespace

Snapshot TakeSnapshot(pid_t pid, const std::function<void(std::function<bool()> is_late)>& look) {
  Snapshot snapshot;
  std::thread thread([&] { snapshot = Take(pid, look); });
  thread.join();
  return snapshot;
}

}  // namespace rankrun::agent
