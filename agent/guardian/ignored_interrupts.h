#pragma once

#include <vector>

#include "agent/guardian/guardian_link.h"

namespace rankrun::agent {

// Interrupts (kInterrupts) that were ignored when this process started, as in a script's
// `rankrun ... &`. Some jobs heed them; the agent learns that after its start.
// Thread: one at a time.
class IgnoredInterrupts {
 public:
  // Blocks the ignored interrupts instead of ignoring them, so that none is lost.
  static IgnoredInterrupts Take();

  // Returns whether a signal does not count. Keeps it until OnEndSignals.
  bool Withholds(const SignalNotice& signal);

  // Returns the kept signals that count.
  std::vector<SignalNotice> OnEndSignals(const EndSignals& end_signals);

  // Ignores the signals that do not count, in an agent.
  void Ignore() const;

 private:
  std::vector<int> ignored_;
  bool knows_end_signals_ = false;
  std::vector<SignalNotice> early_;  // before OnEndSignals
};

}  // namespace rankrun::agent
