#include "base/status/death_watch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/format.h"

namespace rankrun {
namespace {

// The limit is 5 ms, and the kernel wakes a sleeper late.
constexpr std::chrono::milliseconds kBetweenLooks{4};

}  // namespace

DeathWatch DeathWatch::OfThisProcess() {
  const StatusPage* page = StatusPage::OfThisProcess();
  return page != nullptr ? DeathWatch(*page) : DeathWatch();
}

std::string DeathWatch::Message() const {
  std::string death = page_ != nullptr ? page_->PeerDeathMessage() : "";
  if (!death.empty() || !has_death()) return death;
  return rank_ < 0 ? InterruptibleCall::kText
                   : "rank " + std::to_string(rank_) + " was " + InterruptibleCall::kText;
}

Error DeathWatch::ErrorSince(TimePoint wait_began) const {
  return Error{ErrorCode::kCancelled,
               Message() + "; waited " + FormatSeconds(MonotonicClock().Now() - wait_began)};
}

TimePoint DeathWatch::NextLook(TimePoint deadline) const {
  if (!looks()) return deadline;
  return std::min<TimePoint>(deadline, MonotonicClock().Now() + kBetweenLooks);
}

void DeathWatch::SleepUntil(TimePoint until) const {
  if (InterruptibleCall::IsUnderWay()) {
    while (MonotonicClock().Now() < until && !has_death()) {
      std::this_thread::sleep_until(NextLook(until));
    }
  } else if (page_ != nullptr) {
    page_->AwaitDeath(until);
  } else {
    std::this_thread::sleep_until(until);
  }
}

}  // namespace rankrun
