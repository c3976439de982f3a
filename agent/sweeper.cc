#include "agent/sweeper.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "agent/descendants.h"
#include "agent/kept.h"
#include "base/format.h"
#include "base/log.h"
#include "base/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kPatience{300};

}  // namespace

Sweeper::Sweeper(Loop& loop, Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)), patience_(loop, [this] {
        look_.reset();  // a stuck process holds it up: it is not kept
        SignalTheRest();
      }) {}

void Sweeper::Sweep(int signal_number) {
  owed_ = true;
  signal_number_ = signal_number;
  Check();
  if (!owed_) return;
  look_ = std::make_shared<Look>();
  look_->pids = Descendants();
  patience_.Start(kPatience);
  RunInPool(
      loop_, [look = look_] { look->kept = KeptAmong(look->pids); },
      [this, look = look_] { OnLooked(look); });
}

void Sweeper::OnLooked(const std::shared_ptr<Look>& look) {
  if (look != look_) return;  // it came too late
  look_.reset();
  patience_.Stop();
  kept_ = std::move(look->kept);
  for (pid_t pid : kept_) {
    if (said_.insert(pid).second) callbacks_.show("rankrun: " + DescribeKept(pid) + "\n");
  }
  SignalTheRest();
  Check();
}

void Sweeper::Check() {
  if (!owed_ || (HasChildren() && !OnlyKeptAreLeft())) return;
  owed_ = false;
  look_.reset();
  patience_.Stop();
  callbacks_.on_nothing_left();
}

// Beside kept ones there is no proof by ECHILD: /proc may miss a process that
// is just being handed over, but not twice.
bool Sweeper::OnlyKeptAreLeft() const {
  return !kept_.empty() && Descendants(kept_).empty() && Descendants(kept_).empty();
}

void Sweeper::SignalTheRest() {
  if (!owed_) return;
  const std::vector<pid_t> left = Descendants(kept_);
  callbacks_.on_left(left, signal_number_);
  for (pid_t pid : left) SignalOne(pid);
  if (signal_number_ == SIGKILL) kills_ += 1;
}

void Sweeper::SignalOne(pid_t pid) {
  // What lives on after a SIGKILL is worth a word.
  LogLevel level = kills_ > 0 ? LogLevel::kWarn : LogLevel::kInfo;
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
