#include "comm/world/held_rank.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/log.h"
#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "comm/world/stop_number.h"

namespace rankrun::comm {
namespace {

// The kernel sends no event when a debugger attaches.
constexpr std::chrono::milliseconds kBetweenLooks{10};

// Returns whether a debugger has attached to this thread. It attaches to others before.
bool IsTraced() {
  Fd status(open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t size = status ? read(status.get(), text, sizeof text - 1) : 0;
  text[size > 0 ? size : 0] = '\0';
  const char* tracer = strstr(text, "TracerPid:");
  return tracer != nullptr && std::atoi(tracer + strlen("TracerPid:")) != 0;
}

// Lets any process of this user attach, also where only ancestors may (Yama). The permission
// stays, because the kernel does not tell the one that the program had given before. Makes
// SIGTRAP harmless in case the debugger detaches just before the signal: a debugger sees
// ignored signals, too.
class Attachable {
 public:
  Attachable() {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGTRAP, &ignore, &before_);
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    pthread_sigmask(SIG_UNBLOCK, &trap, &mask_);
  }
  Attachable(const Attachable&) = delete;
  Attachable& operator=(const Attachable&) = delete;
  ~Attachable() {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    sigaction(SIGTRAP, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
  sigset_t mask_{};
};

void LogHowToAttach(const HeldRank& rank) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  LogWarn("rank " + std::to_string(rank.global_rank) + " has stopped at the breakpoint " +
          rank.place + "; to go on, attach a debugger on host " + host + ": gdb -p " +
          std::to_string(getpid()) + " -ex continue");
}

}  // namespace

Result<void> StopInDebugger(const HeldRank& rank) {
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page, std::string(kDebuggerWait) + rank.place);
  Attachable attachable;
  const TimePoint began = MonotonicClock().Now();
  const uint32_t hold = NextHold(page);
  const bool was_traced = IsTraced();
  if (!was_traced && !TellAgent("stopped", {rank.global_rank, hold})) LogHowToAttach(rank);
  while (!IsTraced()) {
    if (page != nullptr && page->debuggers_ended() >= hold) return {};
    if (rank.deaths.has_death()) return rank.deaths.ErrorSince(began);
    if (auto failure = rank.find_failure(began)) return *std::move(failure);
    rank.deaths.SleepUntil(MonotonicClock().Now() + kBetweenLooks);
  }
  raise(SIGTRAP);
  if (!was_traced) TellAgent("passed", {rank.global_rank, hold});
  return {};
}

}  // namespace rankrun::comm
