#include "agent/supervisor/breakpoints.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/process/descendants.h"
#include "base/log.h"

namespace rankrun::agent {
namespace {

using Outcome = DebuggerReport::Outcome;

std::string Stopped(int global_rank, pid_t process) {
  return "rankrun: rank " + std::to_string(global_rank) + " (pid " + std::to_string(process) +
         ") has stopped at a breakpoint";
}

}  // namespace

Breakpoints::Breakpoints(Loop& loop, std::string debugger, Callbacks callbacks)
    : loop_(loop), debugger_(std::move(debugger)), callbacks_(std::move(callbacks)) {}

void Breakpoints::OnNotice(const BreakpointNotice& notice) {
  if (notice.kind == BreakpointNotice::Kind::kPassed) return OnPassed(notice);
  const pid_t worker = ChildAbove(notice.process);
  if (worker == 0) {
    LogWarn("RANKRUN_BREAKPOINT_PIPE: process " + std::to_string(notice.process) +
            " is neither a worker nor below one: it gets no debugger");
    return;
  }
  stops_.push_back({notice.global_rank, notice.process, notice.hold, worker});
  if (stops_.size() == 1) return StartFirst();
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

void Breakpoints::StartFirst() {
  const Stop& stop = stops_.front();
  callbacks_.show(Stopped(stop.global_rank, stop.process) + ": starting " + debugger_ + "\n");
  callbacks_.hold_output(stop.worker);
  callbacks_.start({stop.process});
  // A debugger does not notice that its process dies while it waits for a command, and
  // nobody else can reap the process.
  pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, stop.process, 0)));
  if (!pidfd_) return callbacks_.end();
  auto poll = Poll::Open(loop_, pidfd_.get(), [this] {
    exit_poll_->Stop();
    callbacks_.end();
  });
  if (!poll) return;
  exit_poll_ = std::move(*poll);
  exit_poll_->Start();
}

void Breakpoints::OnReport(const DebuggerReport& report) {
  if (stops_.empty()) return;
  const Stop stop = stops_.front();
  stops_.pop_front();
  exit_poll_.reset();
  pidfd_.Reset();
  callbacks_.hold_output({});
  if (report.outcome == Outcome::kEnded) {
    callbacks_.let_go(stop.worker, stop.hold);
  } else {
    callbacks_.show(HowToAttach(stop, report));
  }
  if (!stops_.empty()) StartFirst();
}

void Breakpoints::Clear() {
  if (stops_.empty()) return;
  stops_.erase(stops_.begin() + 1, stops_.end());
  callbacks_.end();
}

std::string Breakpoints::HowToAttach(const Stop& stop, const DebuggerReport& report) const {
  std::string why;
  switch (report.outcome) {
    case Outcome::kNoTerminal:
      why = "rankrun has no terminal here";
      break;
    case Outcome::kInBackground:
      why = "rankrun is in the background of its terminal";
      break;
    case Outcome::kNoProgram:
      why = SystemError("RANKRUN_DEBUGGER: run " + debugger_, report.error_number).message;
      break;
    default:
      why = SystemError("start " + debugger_, report.error_number).message;
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return Stopped(stop.global_rank, stop.process) + ", but " + why +
         "; to go on, attach a debugger on host " + host + ": gdb -p " +
         std::to_string(stop.process) + " -ex continue\n";
}

}  // namespace rankrun::agent
