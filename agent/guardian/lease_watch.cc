#include "agent/guardian/lease_watch.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {

void LeaseWatch::Grant(std::chrono::milliseconds lease, TimePoint now) {
  lease_ = lease;
  deadline_ = now + lease;
}

void LeaseWatch::Renew(TimePoint now) {
  if (deadline_) deadline_ = now + lease_;
}

void LeaseWatch::OnRunning(TimePoint now) {
  std::optional<TimePoint> due = std::exchange(due_, now);
  // This late means that this process was stopped or starved, too.
  bool late = due && now > *due + lease_ / 4;
  if (late) Renew(now);
}

std::optional<TimePoint> LeaseWatch::NextLook(TimePoint now) const {
  if (!deadline_) return std::nullopt;
  return std::min<TimePoint>(*deadline_, now + lease_ / 4);
}

}  // namespace rankrun::agent
