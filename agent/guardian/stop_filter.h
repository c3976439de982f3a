#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace rankrun::agent {

constexpr pid_t kTerminal = 0;
constexpr pid_t kUnknownSender = -1;

// Receiver and sender of a signal.
struct SignalOrigin {
  int signal_number;
  pid_t receiver;
  pid_t sender;  // kTerminal: a key; kUnknownSender: unknown
  bool operator==(const SignalOrigin&) const = default;
};

// Counts requests to stop. One request may arrive as several signals: scancel
// and pkill signal every process, and timeout signals its child and then its
// own process group. The same signal therefore counts once within 500 ms,
// unless a person presses the terminal's key again.
// Pure. Thread: one at a time.
class StopFilter {
 public:
  // Returns whether this signal is a new request.
  bool Count(const SignalOrigin& origin, TimePoint now);

  int requests() const { return requests_; }

 private:
  std::optional<SignalOrigin> last_;
  TimePoint last_at_{};
  int requests_ = 0;
};

}  // namespace rankrun::agent
