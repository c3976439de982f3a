#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

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

  Sweeper(Loop& loop, Callbacks callbacks);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Signals what is left, as soon as it is known what is to be kept: reading
  // that may hang, so the pool does it and is given a moment. on_nothing_left
  // follows, perhaps from here.
  void Sweep(int signal_number);

  // To be called when a child has been reaped.
  void Check();

  // The next attempt begins.
  void Reset() { kills_ = 0; }

 private:
  struct Look {
    std::vector<pid_t> pids;
    std::set<pid_t> kept;
  };

  bool OnlyKeptAreLeft() const;
  void OnLooked(const std::shared_ptr<Look>& look);
  void SignalTheRest();
  void SignalOne(pid_t pid);

  Loop& loop_;
  Callbacks callbacks_;
  bool owed_ = false;  // on_nothing_left
  int signal_number_ = 0;
  int kills_ = 0;                // SIGKILLs to what this attempt left behind
  std::shared_ptr<Look> look_;   // under way; shared with the pool's job
  std::set<pid_t> kept_;         // as the last look found them
  std::set<pid_t> said_;         // of which it has been said
  std::set<pid_t> untouchable_;  // of which it has been said that we may not signal them
  Timer patience_;
};

}  // namespace rankrun::agent
