#pragma once

#include <cstdint>

namespace rankrun::agent {

// How a worker ended, from the strongest sign that it is a cause to none.
enum class EndKind : uint8_t {
  kHung,  // others waited for it too long, so the agent ended the attempt
  kNotStarted,
  kFailed,              // by itself, before any signal of ours
  kExitedAfterSignal,   // with its own code after our signal, without an exception
  kFailedAfterWarning,  // as kFailed, but its last lines mention a lost connection
  kKilledInException,   // by our signal, while it ended with an exception
  kInputEnded,          // its input ended too early: another worker's end, or a file cut off
  kTimedOut,            // it waited too long, perhaps for another worker
  kRaisedAfterSignal,   // ended with an exception after our signal, perhaps in its handler
  kLostPeer,            // it lost the connection to another worker
  kStopped,             // by our signal
  kSucceeded,
};

// Returns whether a worker failed and neither lost a peer nor was stopped by our signal. An
// exception in a handler of our signal counts, too.
constexpr bool FailedByItself(EndKind kind) { return kind < EndKind::kLostPeer; }

// Returns whether the error of a worker is one that the end of another causes: it lost a peer,
// waited too long, or its input ended too early.
constexpr bool MayBeVictim(EndKind kind) {
  return kind == EndKind::kLostPeer || kind == EndKind::kTimedOut || kind == EndKind::kInputEnded ||
         kind == EndKind::kFailedAfterWarning;
}

// Sign of a cause that the end of a worker gives. A value.
struct Ending {
  EndKind kind = EndKind::kSucceeded;
  int lost_rank = -1;  // that its error names as lost; -1: none
  // Fingerprint of the text of its exception without numbers, by which ranks with the same error
  // are recognized; 0: it has none.
  uint64_t error = 0;
  uint64_t logged = 0;  // likewise, of an error that it has logged before
};

}  // namespace rankrun::agent
