#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// Since when workers sleep in the kernel without being interruptible, as far
// as looks at them can tell. Pure.
class StuckTimes {
 public:
  // What a look has found: a letter of /proc/<pid>/stat, 0 for no process.
  // Returns for how long all looks have found state D.
  Duration Note(pid_t pid, char state, TimePoint now);

  // A look has found nobody else: the number of one that died may come again.
  void ForgetAllBut(const std::map<pid_t, char>& states);

 private:
  std::map<pid_t, TimePoint> since_;
};

// The limit that TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT sets, in seconds.
// Nothing if there is none: torchrun takes 0, less, and what is no number for
// "off".
std::optional<Duration> StuckLimit(const std::string& text);

// Looks at the workers from time to time and says who has hung in the kernel
// for too long. The only polling of an agent, and only if asked for: the
// kernel does not tell.
// Thread: loop.
class StuckWatch {
 public:
  struct Callbacks {
    std::function<std::vector<pid_t>()> workers;  // that run
    std::function<void(pid_t worker)> on_stuck;
  };

  StuckWatch(Loop& loop, Duration limit, Callbacks callbacks);
  StuckWatch(const StuckWatch&) = delete;
  StuckWatch& operator=(const StuckWatch&) = delete;

 private:
  void Look();
  void OnLooked(const std::map<pid_t, char>& states);

  Loop& loop_;
  const Duration limit_;
  Callbacks callbacks_;
  StuckTimes times_;
  Timer next_look_;
};

}  // namespace rankrun::agent
