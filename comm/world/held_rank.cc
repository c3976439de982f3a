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

namespace rankrun::comm {

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

void LogHowToAttach(const HeldRank& rank) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  LogWarn("rank " + std::to_string(rank.global_rank) + " has stopped at the breakpoint " +
          rank.place + "; to go on, attach a debugger on host " + host + ": gdb -p " +
          std::to_string(getpid()) + " -ex continue");
}

}  // namespace

DebuggerStop::DebuggerStop(const HeldRank& rank)
    : awaited_(StatusPage::OfThisProcess(), std::string(kDebuggerWait) + rank.place),
      attachable_(std::make_unique<Attachable>()),
      stop_{rank.global_rank, NextHold(StatusPage::OfThisProcess())},
      was_traced_(IsTraced()) {}

Result<std::unique_ptr<DebuggerStop>> DebuggerStop::Await(const HeldRank& rank) {
  const StatusPage* page = StatusPage::OfThisProcess();
  const TimePoint began = MonotonicClock().Now();
  std::unique_ptr<DebuggerStop> stop(new DebuggerStop(rank));
  if (!stop->was_traced_ && !TellAgent("stopped", stop->stop_)) LogHowToAttach(rank);
  while (!IsTraced()) {
    if (page != nullptr && page->debuggers_ended() >= stop->stop_.hold) {
      return std::unique_ptr<DebuggerStop>();
    }
    if (rank.deaths.has_death()) return rank.deaths.ErrorSince(began);
    if (auto failure = rank.find_failure(began)) return *std::move(failure);
    rank.deaths.SleepUntil(MonotonicClock().Now() + kBetweenLooks);
  }
  stop->has_stopped_ = true;
  return stop;
}

DebuggerStop::~DebuggerStop() {
  if (has_stopped_ && !was_traced_) TellAgent("passed", stop_);
}

}  // namespace rankrun::comm
