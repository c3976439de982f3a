#include "agent/guardian/ignored_interrupts.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/guardian/guardian_signals.h"
#include "agent/job/job_signals.h"

namespace rankrun::agent {

IgnoredInterrupts IgnoredInterrupts::Take() {
  IgnoredInterrupts taken;
  for (int number : kInterrupts) {
    if (!IsIgnored(number)) continue;
    ChangeMask(SIG_BLOCK, number);
    signal(number, SIG_DFL);
    taken.ignored_.push_back(number);
  }
  return taken;
}

bool IgnoredInterrupts::Withholds(const SignalNotice& signal) {
  if (std::ranges::find(ignored_, signal.signal_number) == ignored_.end()) return false;
  if (!knows_end_signals_) early_.push_back(signal);
  return true;
}

std::vector<SignalNotice> IgnoredInterrupts::OnEndSignals(const EndSignals& end_signals) {
  knows_end_signals_ = true;
  std::erase_if(ignored_, [&](int number) {
    return end_signals.heeds_interrupts && (end_signals.bits >> number & 1) != 0;
  });
  std::vector<SignalNotice> counting = std::exchange(early_, {});
  std::erase_if(counting, [this](const SignalNotice& signal) { return Withholds(signal); });
  return counting;
}

void IgnoredInterrupts::Ignore() const {
  for (int number : ignored_) signal(number, SIG_IGN);
}

}  // namespace rankrun::agent
