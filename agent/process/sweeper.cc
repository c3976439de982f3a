#include "agent/process/sweeper.h"

#include <signal.h>

#include <chrono>

#include "agent/process/descendants.h"
#include "base/format.h"
#include "base/log.h"
#include "base/process/process_handle.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

// Longest time from fork to exec, on a busy machine.
constexpr std::chrono::milliseconds kStartTakes{250};
// Age since the fork from which on one scan is enough. Longer than kStartTakes,
// which counts from the first scan that finds the process.
constexpr std::chrono::milliseconds kOldAge{1'000};
// SIGKILL sweeps after which one scan is enough, because a process that keeps
// restarting itself is never found twice.
constexpr int kPatientKills = 1;

}  // namespace

Sweeper::Sweeper(Loop& loop, Callbacks callbacks, std::chrono::milliseconds patience)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      patience_(patience),
      scan_deadline_(loop, [this] { EndScan(); }),  // a stuck process blocked the scan
      next_scan_(loop, [this] { BeginScan(); }) {}

void Sweeper::Sweep(int signal_number, std::function<bool(pid_t)> spares) {
  owed_ = true;
  signal_number_ = signal_number;
  spares_ = std::move(spares);
  signaled_.clear();
  Check();
  if (!owed_) return;
  if (signal_number == SIGKILL && !spares_) kills_ += 1;
  BeginScan();
}

void Sweeper::BeginScan() {
  next_scan_.Stop();
  scan_ = std::make_shared<Scan>();
  scan_->began = std::chrono::steady_clock::now();
  scan_->pids = Descendants(callbacks_.helpers ? callbacks_.helpers() : std::set<pid_t>());
  for (pid_t pid : scan_->pids) {
    uint64_t start_time = StartTimeOfProcess(pid);
    scan_->processes.emplace(pid, start_time);
    if (AgeOf(start_time).value_or(Duration(0)) >= kOldAge) scan_->old.insert(pid);
  }
  scan_deadline_.Start(patience_);
  auto job = std::make_shared<Scan>(*scan_);
  RunInPool(
      loop_, [job] { job->marks = OptOutMarksOf(job->pids); },
      [this, job, scan = scan_] {
        if (scan != scan_) return;  // too late: the scan has ended
        scan_ = job;
        opted_out_ = job->marks.opted_out;
        EndScan();
      });
}

void Sweeper::EndScan() {
  scan_deadline_.Stop();
  std::shared_ptr<Scan> scan = std::exchange(scan_, nullptr);
  std::set<pid_t> topmost = TopmostOf(opted_out_);
  for (pid_t pid : opted_out_) {
    if (!announced_.insert(pid).second || !topmost.contains(pid)) continue;
    callbacks_.show("rankrun: " + DescribeOptedOut(pid) + "\n");
  }
  SignalTheRest(*scan);
  Check();
}

void Sweeper::Check() {
  if (!owed_ || (HasChildren() && !OnlyKeptAreLeft())) return;
  owed_ = false;
  scan_.reset();
  scan_deadline_.Stop();
  next_scan_.Stop();
  callbacks_.on_nothing_left();
}

// Returns the processes that may stay.
std::set<pid_t> Sweeper::Kept() const {
  std::set<pid_t> kept = opted_out_;
  if (callbacks_.helpers) kept.merge(callbacks_.helpers());
  return kept;
}

// ECHILD cannot prove that only these processes are left. /proc may miss a
// process while it is reparented, but not twice in a row.
bool Sweeper::OnlyKeptAreLeft() const {
  const std::set<pid_t> kept = Kept();
  return !kept.empty() && Descendants(kept).empty() && Descendants(kept).empty();
}

// Returns the processes for which one scan is enough. Skips the descendants of
// an unreadable process, because that process may have opted out.
std::set<pid_t> Sweeper::ConfirmedBy(const Scan& scan) {
  std::set<pid_t> unreadable;
  for (pid_t pid : scan.pids) {
    if (!scan.marks.not_opted_out.contains(pid)) unreadable.insert(pid);
  }
  std::set<pid_t> confirmed;
  for (pid_t pid : Descendants(unreadable)) {
    if (scan.old.contains(pid)) confirmed.insert(pid);
  }
  return confirmed;
}

void Sweeper::SignalTheRest(const Scan& scan) {
  std::set<pid_t> confirmed = ConfirmedBy(scan);
  std::map<Process, TimePoint> seen;
  std::vector<pid_t> sure;
  bool more = false;
  for (pid_t pid : Descendants(Kept())) {
    Process process(pid, StartTimeOfProcess(pid));
    bool was_scanned = scan.processes.contains(process);
    auto known = first_seen_.find(process);
    TimePoint since = known != first_seen_.end() ? known->second : scan.began;
    if (was_scanned) seen[process] = since;
    if (signaled_.contains(process) || (spares_ && spares_(pid))) continue;
    bool long_ago = scan.began - since >= kStartTakes || kills_ > kPatientKills;
    if (was_scanned && (long_ago || confirmed.contains(pid))) {
      sure.push_back(pid);
      signaled_.insert(process);
    } else {
      more = true;
    }
  }
  first_seen_ = std::move(seen);
  if (!sure.empty()) callbacks_.on_left(sure, signal_number_);
  for (pid_t pid : sure) SignalOne(pid);
  if (more) next_scan_.Start(kStartTakes);
}

void Sweeper::SignalOne(pid_t pid) {
  // Warn about processes that survive SIGKILL.
  LogLevel level = kills_ > 1 ? LogLevel::kWarn : LogLevel::kInfo;
  if (LogEnabled(level)) {
    Log(level, "ending a leftover process: " + DescribeProcess(pid) + ", by " +
                   SignalName(signal_number_));
  }
  bool forbidden = !SignalDescendant(pid, signal_number_);
  if (!IsTraced(ReadOfProcess(pid, "status"))) SignalDescendant(pid, SIGCONT);
  if (forbidden && unsignalable_.insert(pid).second) {
    LogWarn("no permission to signal a leftover process, waiting for its end: " +
            DescribeProcess(pid));
  }
}

}  // namespace rankrun::agent
