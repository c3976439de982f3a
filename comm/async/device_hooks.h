#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/async/work_state.h"
#include "comm/core/backend.h"
#include "comm/core/operation.h"

namespace rankrun::comm {

// Ways from the calls on devices to their process group.
struct DeviceHooks {
  std::string name;  // on the status page
  int world_size;
  int global_rank;  // of this process
  DeathWatch deaths;
  // Returns why a wait since that time must end, if it must.
  std::function<std::optional<Error>(TimePoint since)> find_failure;
  // Breaks the group, and by this ends all of its calls. Returns the full text.
  std::function<Error(const Operation& operation, Error error, std::chrono::milliseconds timeout)>
      failed;
  // Notes that a collective since that time is complete.
  std::function<void(const Operation& operation, TimePoint since)> completed;
  // Starts a message in CPU memory to or from the peer of `operation`, a message, of
  // which its errors speak. Errors have the full text.
  std::function<Result<std::shared_ptr<WorkState>>(
      const Operation& operation, Operation::Kind direction, uint64_t tag, Block data)>
      start_message;
};

// Pauses between two polls of a device: short enough for a small call, and without load
// while a long one runs.
inline constexpr Duration kMinDevicePause = std::chrono::microseconds(20);
inline constexpr Duration kMaxDevicePause = std::chrono::microseconds(500);

// Checks for failures of other ranks every 5 ms, because a check makes system calls.
class FailureCheck {
 public:
  explicit FailureCheck(const DeviceHooks& hooks) : hooks_(hooks) {}

  // Returns why a call since that time must end, if it is time for a check.
  std::optional<Error> Find(TimePoint since) {
    TimePoint now = MonotonicClock().Now();
    if (now < std::max(next_, since + kInterval)) return std::nullopt;
    next_ = now + kInterval;
    return hooks_.find_failure(since);
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{5};

  const DeviceHooks& hooks_;
  TimePoint next_{};  // earliest
};

}  // namespace rankrun::comm
