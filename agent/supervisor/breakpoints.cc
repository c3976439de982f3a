#include "agent/supervisor/breakpoints.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

using Outcome = DebuggerReport::Outcome;

std::string Stopped(int global_rank, pid_t process) {
  return "rankrun: rank " + std::to_string(global_rank) + " (pid " + std::to_string(process) +
         ") has stopped at a breakpoint";
}

std::string HowToAttach(int global_rank, pid_t process, const std::string& why) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return Stopped(global_rank, process) + ", but " + why + "; to go on, attach a debugger on host " +
         host + ": gdb -p " + std::to_string(process) + " -ex continue\n";
}

bool HasEnded(const Fd& pidfd) {
  pollfd ready{pidfd.get(), POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace

Breakpoints::Breakpoints(Loop& loop, std::string debugger, Callbacks callbacks)
    : loop_(loop), debugger_(std::move(debugger)), callbacks_(std::move(callbacks)) {}

void Breakpoints::OnNotice(const BreakpointNotice& notice) {
  if (notice.kind == BreakpointNotice::Kind::kPassed) return OnPassed(notice);
  // Opened first, so that a process that takes over the pid later is not the one that it means.
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, notice.process, 0)));
  const int error_number = errno;
  const pid_t worker = ChildAbove(notice.process);
  if (worker == 0) {
    return callbacks_.show(HowToAttach(notice.global_rank, notice.process,
                                       "no process below this rankrun has that pid here"));
  }
  if (!pidfd) {
    const std::string why = SystemError("watch it", error_number).message;
    return callbacks_.show(HowToAttach(notice.global_rank, notice.process, why));
  }
  stops_.push_back({notice.global_rank, notice.process, notice.hold, worker, std::move(pidfd)});
  if (stops_.size() == 1) return StartNext();
  callbacks_.show(Stopped(notice.global_rank, notice.process) +
                  " and waits until the debugger of rank " +
                  std::to_string(stops_.front().global_rank) + " has ended\n");
}

// A debugger attached by hand may let a process go on that still waits for its turn.
void Breakpoints::OnPassed(const BreakpointNotice& notice) {
  auto is_over = [&](const Stop& stop) {
    return stop.process == notice.process && stop.hold == notice.hold;
  };
  if (stops_.empty()) return;
  if (is_over(stops_.front())) return callbacks_.hold_output({});
  stops_.erase(std::remove_if(stops_.begin() + 1, stops_.end(), is_over), stops_.end());
}

void Breakpoints::StartNext() {
  for (; !stops_.empty(); stops_.pop_front()) {
    const Stop& stop = stops_.front();
    if (HasEnded(stop.pidfd)) continue;
    if (auto watched = WatchFirst(); !watched) {
      callbacks_.show(HowToAttach(stop.global_rank, stop.process, watched.error().message));
      continue;
    }
    callbacks_.show(Stopped(stop.global_rank, stop.process) + ": starting " + debugger_ + "\n");
    callbacks_.hold_output(stop.worker);
    return callbacks_.start({stop.process});
  }
}

// A debugger does not notice that its process dies while it waits for a command, and
// nobody else can reap the process.
Result<void> Breakpoints::WatchFirst() {
  auto poll = Poll::Open(loop_, stops_.front().pidfd.get(), [this] {
    exit_poll_->Stop();
    callbacks_.end();
  });
  if (!poll) return std::move(poll).error();
  exit_poll_ = std::move(*poll);
  exit_poll_->Start();
  return {};
}

void Breakpoints::OnReport(const DebuggerReport& report) {
  if (stops_.empty()) return;
  exit_poll_.reset();
  const Stop stop = std::move(stops_.front());
  stops_.pop_front();
  callbacks_.hold_output({});
  if (report.outcome == Outcome::kEnded) {
    callbacks_.let_go(stop.worker, stop.hold);
  } else {
    callbacks_.show(HowToAttach(stop.global_rank, stop.process, WhyNone(report)));
  }
  StartNext();
}

void Breakpoints::Clear() {
  if (stops_.empty()) return;
  stops_.erase(stops_.begin() + 1, stops_.end());
  callbacks_.end();
}

std::string Breakpoints::WhyNone(const DebuggerReport& report) const {
  switch (report.outcome) {
    case Outcome::kNoTerminal:
      return "rankrun has no terminal here";
    case Outcome::kInBackground:
      return "rankrun is in the background of its terminal";
    case Outcome::kNoProgram:
      return SystemError("RANKRUN_DEBUGGER: run " + debugger_, report.error_number).message;
    default:
      return SystemError("start " + debugger_, report.error_number).message;
  }
}

}  // namespace rankrun::agent
