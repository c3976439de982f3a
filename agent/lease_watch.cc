#include "agent/lease_watch.h"

#include <utility>

namespace rankrun::agent {

void LeaseWatch::Grant(std::chrono::milliseconds lease, TimePoint now) {
  lease_ = lease;
  deadline_ = now + lease;
}

void LeaseWatch::Renew(TimePoint now) {
  if (deadline_) deadline_ = now + lease_;
}

void LeaseWatch::Woke(TimePoint now) {
  std::optional<TimePoint> due = std::exchange(due_, std::nullopt);
  // Nobody is late by so much who was not stopped, or starved like the agent.
  bool overslept = due && now > *due + lease_ / 4;
  if (overslept) Renew(now);
}

}  // namespace rankrun::agent
