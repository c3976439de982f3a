#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace rankrun::agent {

// A request to torchrun's file timer: signal a process at a time of day, unless
// it releases the timer before.
// Source: torch.distributed.elastic.timer.FileTimerClient
struct TimerRequest {
  pid_t pid;
  std::string scope;
  std::optional<double> expires;  // seconds since 1970; empty: release the timer
  int signal_number;              // 0 or less: only log the expiry
  bool operator==(const TimerRequest&) const = default;
};

// Errors: kInvalid, with the reason.
Result<TimerRequest> ParseTimerRequest(std::string_view line);

// The timers of the processes of a node. Pure.
class FileTimers {
 public:
  static constexpr size_t kMax = 10'000;

  struct Timer {
    pid_t pid;
    std::string scope;
    TimePoint expires;
    int signal_number;
    uint64_t start_time;  // of the process; a later process may reuse the pid
    bool operator==(const Timer&) const = default;
  };

  // Adds a timer, or replaces the one of the same pid and scope.
  // Errors: kExhausted if there are kMax timers.
  Result<void> Set(Timer timer);
  void Release(pid_t pid, const std::string& scope) { timers_.erase({pid, scope}); }
  void Clear() { timers_.clear(); }

  // Returns the time of the next expiry.
  std::optional<TimePoint> Next() const;

  // Removes and returns the expired timers, the earliest first, one per
  // process. Also removes all other timers of those processes.
  std::vector<Timer> TakeExpired(TimePoint now);

  size_t size() const { return timers_.size(); }

 private:
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
};

}  // namespace rankrun::agent
