#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Records since when each worker has been in uninterruptible sleep in the
// kernel, as far as periodic scans show. Pure.
class StuckTimes {
 public:
  // Records one observation: a state letter of /proc/<pid>/stat, 0 for no
  // process. Returns for how long every scan has found state D.
  Duration Note(pid_t pid, char state, TimePoint now);

  // Forgets all other processes, because the pid of a dead one may be reused.
  void ForgetAllBut(const std::map<pid_t, char>& states);

 private:
  std::map<pid_t, TimePoint> since_;
};

// Returns the limit that TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT sets, in
// seconds. Returns nothing for zero, negative numbers and other text, which
// torchrun takes as "off".
std::optional<Duration> StuckLimit(const std::string& text);

// Checks the workers periodically and reports those that hang in the kernel for
// too long. This is the agent's only polling, and only on request, because the
// kernel sends no event for it.
// Thread: loop.
class StuckWatch {
 public:
  struct Callbacks {
    std::function<std::vector<pid_t>()> workers;  // running workers
    std::function<void(pid_t worker)> on_stuck;
  };

  StuckWatch(Loop& loop, Duration limit, Callbacks callbacks);
  StuckWatch(const StuckWatch&) = delete;
  StuckWatch& operator=(const StuckWatch&) = delete;

 private:
  void Scan();
  void OnScanned(const std::map<pid_t, char>& states);

  Loop& loop_;
  const Duration limit_;
  Callbacks callbacks_;
  StuckTimes times_;
  Timer next_scan_;
};

}  // namespace rankrun::agent
