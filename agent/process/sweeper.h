#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/process/opted_out_processes.h"
#include "base/clock.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Ends the processes that the workers of an attempt left behind, except
// opted-out ones (opted_out_processes.h), and reports when no others are left.
// Thread: loop.
class Sweeper {
 public:
  struct Callbacks {
    std::function<void()> on_nothing_left;
    std::function<void(const std::vector<pid_t>& pids, int signal_number)> on_left;
    std::function<void(const std::string& text)> show;
    // Returns children of this process that are not of the workers; may be empty.
    std::function<std::set<pid_t>()> helpers = {};
  };

  // `patience`: time limit of each scan, which may hang.
  Sweeper(Loop& loop, Callbacks callbacks, std::chrono::milliseconds patience = kKeptPatience);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Signals all leftover processes except opted-out ones. A process may opt out
  // until its exec, so a young process is signalled only after two scans some
  // time apart. A scan may hang, so it runs in the pool with a time limit.
  // Calls on_nothing_left in the end, perhaps before it returns. Waits for the
  // processes that `spares` selects without a signal.
  void Sweep(int signal_number, std::function<bool(pid_t)> spares = {});

  // Call this after a child has been reaped.
  void Check();

  // Call this when the next attempt begins.
  void Reset() { kills_ = 0; }

 private:
  using Process = std::pair<pid_t, uint64_t>;  // pid and start time: unique
  struct Scan {
    TimePoint began;
    std::vector<pid_t> pids;
    std::set<Process> processes;
    std::set<pid_t> old;
    OptOutMarks marks;
  };

  void BeginScan();
  void EndScan();
  static std::set<pid_t> ConfirmedBy(const Scan& scan);
  void SignalTheRest(const Scan& scan);
  void SignalOne(pid_t pid);
  std::set<pid_t> Kept() const;
  bool OnlyKeptAreLeft() const;

  Loop& loop_;
  Callbacks callbacks_;
  const std::chrono::milliseconds patience_;
  bool owed_ = false;  // on_nothing_left is due
  int signal_number_ = 0;
  std::function<bool(pid_t)> spares_;  // of this sweep; may be empty
  int kills_ = 0;                      // SIGKILL sweeps of this attempt
  // Scan in progress; null: none. The pool's job fills a copy of it.
  std::shared_ptr<Scan> scan_;
  std::map<Process, TimePoint> first_seen_;  // processes of the last scan that had not opted out
  std::set<Process> signaled_;               // in this sweep
  std::set<pid_t> opted_out_;                // found by the last scan
  std::set<pid_t> announced_;                // opted-out processes that were announced
  std::set<pid_t> unsignalable_;             // processes reported as not ours to signal
  Timer scan_deadline_;
  Timer next_scan_;
};

}  // namespace rankrun::agent
