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

#include "agent/kept.h"
#include "base/clock.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// Ends what the workers of an attempt left behind, but for processes that are
// to be kept (kept.h), and finds out when nothing else is left.
// Thread: loop.
class Sweeper {
 public:
  struct Callbacks {
    std::function<void()> on_nothing_left;
    std::function<void(const std::vector<pid_t>& pids, int signal_number)> on_left;
    std::function<void(const std::string& text)> show;
  };

  // `patience`: with each look at what is kept, which may hang.
  Sweeper(Loop& loop, Callbacks callbacks, std::chrono::milliseconds patience = kKeptPatience);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Signals what is left, each process that is not to be kept; that is not
  // known before its exec, so of a young one two looks some time apart tell.
  // Looking may hang, so the pool does it and is given a moment.
  // on_nothing_left follows, perhaps from here.
  void Sweep(int signal_number);

  // To be called when a child has been reaped.
  void Check();

  // The next attempt begins.
  void Reset() { kills_ = 0; }

 private:
  using Process = std::pair<pid_t, uint64_t>;  // with its start time: for ever
  struct Look {
    TimePoint began;
    std::vector<pid_t> pids;
    std::set<Process> processes;
    std::set<pid_t> old;
    KeepMarks marks;
  };

  void BeginLook();
  void EndLook();
  static std::set<pid_t> SettledBy(const Look& look);
  void SignalTheRest(const Look& look);
  void SignalOne(pid_t pid);
  bool OnlyKeptAreLeft() const;

  Loop& loop_;
  Callbacks callbacks_;
  const std::chrono::milliseconds patience_;
  bool owed_ = false;  // on_nothing_left
  int signal_number_ = 0;
  int kills_ = 0;  // sweeps of this attempt by SIGKILL
  // Under way. The pool's job has a copy of its own, which comes back with what is kept.
  std::shared_ptr<Look> look_;
  std::map<Process, TimePoint> first_seen_;  // of those that the last look found not kept
  std::set<Process> signaled_;               // in this sweep
  std::set<pid_t> kept_;                     // as the last look found them
  std::set<pid_t> said_;                     // of which it has been said
  std::set<pid_t> untouchable_;  // of which it has been said that we may not signal them
  Timer look_deadline_;
  Timer next_look_;
};

}  // namespace rankrun::agent
