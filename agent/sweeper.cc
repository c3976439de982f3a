#include "agent/sweeper.h"

#include <signal.h>

#include <cerrno>
#include <chrono>

#include "agent/descendants.h"
#include "base/format.h"
#include "base/log.h"
#include "base/uv_work.h"

namespace rankrun::agent {
namespace {

// From the fork of a process to its exec, on a busy machine.
constexpr std::chrono::milliseconds kStartTakes{250};
// Since its fork. More than the above, which counts from our first look.
constexpr std::chrono::milliseconds kOld{1'000};
// Sweeps by SIGKILL after which one look is enough: what starts itself anew all
// the time is never found twice.
constexpr int kPatientKills = 1;

}  // namespace

Sweeper::Sweeper(Loop& loop, Callbacks callbacks, std::chrono::milliseconds patience)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      patience_(patience),
      look_deadline_(loop, [this] { EndLook(); }),  // a stuck process holds it up: it is not kept
      next_look_(loop, [this] { BeginLook(); }) {}

void Sweeper::Sweep(int signal_number) {
  owed_ = true;
  signal_number_ = signal_number;
  signaled_.clear();
  Check();
  if (!owed_) return;
  if (signal_number == SIGKILL) kills_ += 1;
  BeginLook();
}

void Sweeper::BeginLook() {
  next_look_.Stop();
  look_ = std::make_shared<Look>();
  look_->began = std::chrono::steady_clock::now();
  look_->pids = Descendants();
  for (pid_t pid : look_->pids) {
    uint64_t start_time = StartTimeOf(pid);
    look_->processes.emplace(pid, start_time);
    if (AgeOf(start_time).value_or(Duration(0)) >= kOld) look_->old.insert(pid);
  }
  look_deadline_.Start(patience_);
  auto job = std::make_shared<Look>(*look_);
  RunInPool(
      loop_, [job] { job->marks = KeepMarksOf(job->pids); },
      [this, job, look = look_] {
        if (look != look_) return;  // it came too late
        look_ = job;
        kept_ = job->marks.kept;
        EndLook();
      });
}

void Sweeper::EndLook() {
  look_deadline_.Stop();
  std::shared_ptr<Look> look = std::exchange(look_, nullptr);
  const std::set<pid_t> topmost = TopmostOf(kept_);
  for (pid_t pid : kept_) {
    if (!said_.insert(pid).second || !topmost.contains(pid)) continue;
    callbacks_.show("rankrun: " + DescribeKept(pid) + "\n");
  }
  SignalTheRest(*look);
  Check();
}

void Sweeper::Check() {
  if (!owed_ || (HasChildren() && !OnlyKeptAreLeft())) return;
  owed_ = false;
  look_.reset();
  look_deadline_.Stop();
  next_look_.Stop();
  callbacks_.on_nothing_left();
}

// Beside kept ones there is no proof by ECHILD: /proc may miss a process that
// is just being handed over, but not twice.
bool Sweeper::OnlyKeptAreLeft() const {
  return !kept_.empty() && Descendants(kept_).empty() && Descendants(kept_).empty();
}

// What one look is enough for. What is below one that could not be read may be
// that one's.
std::set<pid_t> Sweeper::SettledBy(const Look& look) {
  std::set<pid_t> unsure;
  for (pid_t pid : look.pids) {
    if (!look.marks.not_kept.contains(pid)) unsure.insert(pid);
  }
  std::set<pid_t> settled;
  for (pid_t pid : Descendants(unsure)) {
    if (look.old.contains(pid)) settled.insert(pid);
  }
  return settled;
}

void Sweeper::SignalTheRest(const Look& look) {
  const std::set<pid_t> settled = SettledBy(look);
  std::map<Process, TimePoint> seen;
  std::vector<pid_t> sure;
  bool more = false;
  for (pid_t pid : Descendants(kept_)) {
    Process process(pid, StartTimeOf(pid));
    bool looked_at = look.processes.contains(process);
    auto known = first_seen_.find(process);
    TimePoint since = known != first_seen_.end() ? known->second : look.began;
    if (looked_at) seen[process] = since;
    if (signaled_.contains(process)) continue;
    bool long_ago = look.began - since >= kStartTakes || kills_ > kPatientKills;
    if (looked_at && (long_ago || settled.contains(pid))) {
      sure.push_back(pid);
      signaled_.insert(process);
    } else {
      more = true;
    }
  }
  first_seen_ = std::move(seen);
  if (!sure.empty()) callbacks_.on_left(sure, signal_number_);
  for (pid_t pid : sure) SignalOne(pid);
  if (more) next_look_.Start(kStartTakes);
}

void Sweeper::SignalOne(pid_t pid) {
  // What lives on after a SIGKILL is worth a word.
  LogLevel level = kills_ > 1 ? LogLevel::kWarn : LogLevel::kInfo;
  if (LogEnabled(level)) {
    Log(level, "ending what the workers left behind: " + DescribeProcess(pid) + ", by " +
                   SignalName(signal_number_));
  }
  bool forbidden = kill(pid, signal_number_) != 0 && errno == EPERM;
  kill(pid, SIGCONT);
  if (forbidden && untouchable_.insert(pid).second) {
    LogWarn("may not signal what the workers left behind, waiting for its end: " +
            DescribeProcess(pid));
  }
}

}  // namespace rankrun::agent
