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

// A line of torchrun's file timer: a process wants a signal at a time of day,
// unless it says before that it no longer does.
// Source: torch.distributed.elastic.timer.FileTimerClient
struct TimerRequest {
  pid_t pid;
  std::string scope;
  std::optional<double> expires;  // seconds since 1970; nothing: release
  int signal_number;              // 0 or less: only say it
  bool operator==(const TimerRequest&) const = default;
};

// Errors: kInvalid, what is wrong with the line.
Result<TimerRequest> ParseTimerRequest(std::string_view line);

// The timers of the processes of a node. Pure.
class FileTimers {
 public:
  static constexpr size_t kMost = 10'000;

  struct Timer {
    pid_t pid;
    std::string scope;
    TimePoint expires;
    int signal_number;
    uint64_t start_time;  // of the process: tells it from a later one of that number
    bool operator==(const Timer&) const = default;
  };

  // A timer with the same pid and scope is replaced.
  // Errors: kExhausted when there are too many.
  Result<void> Set(Timer timer);
  void Release(pid_t pid, const std::string& scope) { timers_.erase({pid, scope}); }
  void Clear() { timers_.clear(); }

  // When the next one expires.
  std::optional<TimePoint> Next() const;

  // Those that have expired, the earliest first, one for each process: all
  // other timers of those processes are forgotten.
  std::vector<Timer> TakeExpired(TimePoint now);

  size_t size() const { return timers_.size(); }

 private:
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
};

}  // namespace rankrun::agent
