#include "agent/supervisor/breakpoints.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/process/descendants.h"
#include "base/host_name.h"
#include "base/log.h"

namespace rankrun::agent {
namespace {

using Outcome = DebuggerReport::Outcome;

std::string StoppedText(int global_rank, pid_t process) {
  return "rankrun: rank " + std::to_string(global_rank) + " (pid " + std::to_string(process) +
         ") has stopped at a breakpoint";
}

std::string HowToAttach(int global_rank, pid_t process, const std::string& why) {
  return StoppedText(global_rank, process) + ", but " + why +
         "; to go on, attach a debugger on host " + HostName() + ": gdb -p " +
         std::to_string(process) + " -ex continue\n";
}

// Sends an empty path to a process that waits for the terminal.
void RefuseTerminal(pid_t process, int pipe) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(pipe);
  Fd answer(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const bool is_pipe = answer && fstat(answer.get(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (is_pipe && write(answer.get(), "\n", 1) == 1) return;
  LogDebug("cannot tell pid " + std::to_string(process) + " that it gets no terminal");
}

}  // namespace

Breakpoints::Breakpoints(Loop& loop, std::string debugger, Callbacks callbacks)
    : loop_(loop), debugger_(std::move(debugger)), callbacks_(std::move(callbacks)) {}

void Breakpoints::OnNotice(const BreakpointNotice& notice) {
  if (notice.kind == BreakpointNotice::Kind::kPassed) return OnPassed(notice);
  if (notice.kind == BreakpointNotice::Kind::kReturned) return OnReturned(notice);
  // Opened first, so that a process that takes over the pid later is not the one that it means.
  auto handle = ProcessHandle::Open(notice.process);
  const pid_t worker = ChildAbove(notice.process);
  if (worker == 0) {  // perhaps of another pid namespace, so that the pid means another process
    return callbacks_.show(HowToAttach(notice.global_rank, notice.process,
                                       "no process below this rankrun has that pid here"));
  }
  if (!handle) return ShowFailure(notice, handle.error().message);
  holds_[notice.process] = {worker, notice.hold};
  stops_.push_back({notice, worker, std::move(*handle)});
  if (stops_.size() == 1) return StartNext();
  callbacks_.show(StoppedText(notice.global_rank, notice.process) +
                  " and waits until the debugger of rank " +
                  std::to_string(stops_.front().notice.global_rank) + " has ended\n");
}

std::vector<pid_t> Breakpoints::Held() const {
  std::vector<pid_t> workers;
  for (const auto& [process, hold] : holds_) workers.push_back(hold.worker);
  return workers;
}

// A debugger attached by hand may let a process go on that still waits for its turn.
void Breakpoints::OnPassed(const BreakpointNotice& notice) {
  Forget(notice);
  auto is_over = [&](const Stop& stop) {
    return stop.notice.process == notice.process && stop.notice.hold == notice.hold;
  };
  if (stops_.empty()) return;
  if (is_over(stops_.front())) return callbacks_.hold_output({});
  stops_.erase(std::remove_if(stops_.begin() + 1, stops_.end(), is_over), stops_.end());
}

// The pipe may stay open in a process that it has forked.
void Breakpoints::OnReturned(const BreakpointNotice& notice) {
  if (stops_.empty()) return;
  const BreakpointNotice& first = stops_.front().notice;
  if (first.process == notice.process && first.hold == notice.hold) callbacks_.end();
}

void Breakpoints::StartNext() {
  for (; !stops_.empty(); stops_.pop_front()) {
    const auto& [notice, worker, handle] = stops_.front();
    if (handle.HasEnded()) continue;
    if (auto watched = WatchFirst(); !watched) {
      ShowFailure(notice, watched.error().message);
      continue;
    }
    callbacks_.show(StoppedText(notice.global_rank, notice.process) + ": " +
                    (notice.pipe < 0 ? "starting " + debugger_ : "lending it the terminal") + "\n");
    callbacks_.hold_output(worker);
    return callbacks_.start({notice.process, notice.pipe});
  }
}

// A debugger does not notice that its process dies while it waits for a command, and
// nobody else can reap the process.
Result<void> Breakpoints::WatchFirst() {
  auto poll = Poll::Open(loop_, stops_.front().handle.fd(), [this] {
    if (!stops_.front().handle.HasEnded()) return;
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
    Forget(stop.notice);
    callbacks_.let_go(stop.worker, stop.notice.hold);
  } else {
    ShowFailure(stop.notice, WhyNone(report));
  }
  StartNext();
}

// A process that debugs itself goes on with an error.
void Breakpoints::ShowFailure(const BreakpointNotice& notice, const std::string& why) {
  if (notice.pipe < 0) {
    return callbacks_.show(HowToAttach(notice.global_rank, notice.process, why));
  }
  Forget(notice);
  callbacks_.show(StoppedText(notice.global_rank, notice.process) + ", but " + why + "\n");
  RefuseTerminal(notice.process, notice.pipe);
}

void Breakpoints::Forget(const BreakpointNotice& notice) {
  auto hold = holds_.find(notice.process);
  if (hold != holds_.end() && hold->second.number == notice.hold) holds_.erase(hold);
}

void Breakpoints::Clear() {
  holds_.clear();
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
      return SystemError("start a debugger", report.error_number).message;
  }
}

}  // namespace rankrun::agent
