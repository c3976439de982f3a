#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

constexpr pid_t kTerminal = 0;
constexpr pid_t kUnknownSender = -1;

// Where a signal came from: which of our processes got it, from whom.
struct SignalOrigin {
  int signal_number;
  pid_t receiver;
  pid_t sender;  // kTerminal: a key; kUnknownSender: not told
  bool operator==(const SignalOrigin&) const = default;
};

// Counts requests to stop. Somebody who signals everybody (scancel, pkill,
// timeout, which signals its child and then its own process group) asks once,
// though several signals come of it: the same signal counts once within 500 ms,
// unless a person presses the key of the terminal again.
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
