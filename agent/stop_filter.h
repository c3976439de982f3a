#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

// Where a signal came from: which of our processes got it, from whom.
struct SignalOrigin {
  int signal_number;
  pid_t receiver;
  pid_t sender;  // 0: the kernel or unknown
  bool operator==(const SignalOrigin&) const = default;
};

// Counts requests to stop. Somebody who signals everybody (scancel, pkill) asks
// once, though several of our processes get the signal: the same signal counts
// once within 500 ms, unless the same sender repeats it to the same receiver.
// Pure. Thread: one at a time.
class StopFilter {
 public:
  // Whether this signal is a request of its own.
  bool Count(const SignalOrigin& origin, TimePoint now);

  int requests() const { return requests_; }

 private:
  std::optional<SignalOrigin> last_;
  TimePoint last_at_{};
  int requests_ = 0;
};

}  // namespace rankrun::agent
