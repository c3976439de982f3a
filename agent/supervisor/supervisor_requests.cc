// The part of Supervisor that carries out requests from outside: signals, the end of the
// program that started the job, and breakpoints.

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "agent/guardian/debugger.h"
#include "agent/job/job_signals.h"
#include "agent/preload/preloader.h"
#include "agent/process/descendants.h"
#include "agent/process/opted_out_processes.h"
#include "agent/supervisor/inspection.h"
#include "agent/supervisor/supervisor.h"
#include "base/format.h"
#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kSpawnerTimeout{1'000};

std::string NotPassedOn(int signal_number, const std::vector<int>& ranks) {
  return "rankrun: " + SignalName(signal_number) + " was not passed on to " + RanksInWords(ranks) +
         ": no process there handles it\n";
}

}  // namespace

void Supervisor::OnLinkReadable() {
  while (auto message = link_.Receive()) {
    if (std::holds_alternative<LinkClosed>(*message)) OnGuardianLost();
    if (auto* notice = std::get_if<SignalNotice>(&*message)) {
      OnSignal({notice->signal_number, guardian_, notice->sender});
    }
    if (auto* report = std::get_if<DebuggerReport>(&*message)) breakpoints_.OnReport(*report);
  }
}

void Supervisor::OnSignal(const SignalOrigin& origin) {
  int number = origin.signal_number;
  if (number == SIGTSTP) number = SIGSTOP;  // the kernel ignores SIGTSTP in orphaned groups
  SignalMeaning meaning = MeaningOf(number, spec_.end_signals);
  if (meaning == SignalMeaning::kPass) {
    workers_stopped_ = number == SIGSTOP || (workers_stopped_ && number != SIGCONT);
    if (number == SIGSTOP || number == SIGCONT) health_.Pause(workers_stopped_);
    auto without = attempt_ ? attempt_->Pass(number) : std::vector<int>();
    if (!without.empty()) output_.Say(NotPassedOn(number, without));
  } else if (meaning == SignalMeaning::kKill) {
    StopAtOnce(number);
  } else {
    StopGently(origin);
  }
}

void Supervisor::StopAtOnce(int signal_number) {
  if (!std::exchange(impatient_, true)) {
    output_.Say("rankrun: " + SignalName(signal_number) +
                " is not one of --signals-to-handle: killing the workers\n");
  }
  Post(StopRequested{signal_number, true});
  CloseJob(SignalName(signal_number), 128 + signal_number);
  if (state_.over()) FinishWhenShown();
}

void Supervisor::StopGently(const SignalOrigin& origin) {
  int number = origin.signal_number;
  if (!stop_filter_.Count(origin, std::chrono::steady_clock::now())) return;
  impatient_ = stop_filter_.requests() >= 2;
  if (state_.over()) {
    impatient_ = true;
    FinishWhenShown();
    return;
  }
  if (stop_filter_.requests() == 1) {
    output_.Say("rankrun: " + SignalName(number) + ": stopping the workers within " +
                FormatSeconds(spec_.shutdown_timeout) + "; a second signal kills them at once\n");
  }
  Post(StopRequested{number});
  if (stop_filter_.requests() == 1) LeaveOrClose(number);
}

void Supervisor::OnLifelineEnded(const std::string& program) {
  if (stop_filter_.requests() > 0) return;  // a signal often arrives as well
  output_.Say("rankrun: " + program + " has ended\n");
  StopGently({SIGTERM, getpid(), kUnknownSender});
}

// Kills everything: the workers first, because that needs no file descriptor.
void Supervisor::OnGuardianLost() {
  spawner_.Abandon();
  if (preloader_) preloader_->End();
  if (attempt_) attempt_->SignalAllBut({}, SIGKILL);
  store_.Close();
  std::set<pid_t> kept = FindOptedOut({}, kKeptPatience);
  KillDescendants(kept);
  spawner_.AwaitIdle(kSpawnerTimeout);  // it may still start a process
  KillDescendants(kept);
  channels_ = {};
  inspection_.reset();
  output_.CloseLogs();  // last: a file system may hang
  _exit(kExitInternalError);
}

Breakpoints::Callbacks Supervisor::OnBreakpoints() {
  auto let_go = [this](pid_t worker, uint32_t hold) {
    auto local_rank = attempt_ ? attempt_->LocalRankOf(worker) : std::nullopt;
    if (local_rank) attempt_->PublishDebuggerEnd(*local_rank, hold);
  };
  auto hold_output = [this](std::optional<pid_t> worker) {
    input_.Pause(worker.has_value());
    output_.HoldAllBut(worker && attempt_ ? attempt_->LocalRankOf(*worker) : std::nullopt);
    if (attempt_) attempt_->ResumeOutput();
  };
  return {.start = [this](StartDebugger request) { link_.Send(request); },
          .end = [this] { link_.Send(EndDebugger{}); },
          .let_go = let_go,
          .hold_output = hold_output,
          .show = [this](const std::string& line) { output_.Say(line); }};
}

}  // namespace rankrun::agent
