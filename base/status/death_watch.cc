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

Error DeathWatch::ErrorSince(TimePoint wait_began) const {
  return Error{ErrorCode::kCancelled,
               Message() + "; waited " + FormatSeconds(MonotonicClock().Now() - wait_began)};
}

TimePoint DeathWatch::NextLook(TimePoint deadline) const {
  if (page_ == nullptr) return deadline;
  return std::min<TimePoint>(deadline, MonotonicClock().Now() + kBetweenLooks);
}

void DeathWatch::SleepUntil(TimePoint until) const {
  if (page_ == nullptr) return std::this_thread::sleep_until(until);
  page_->AwaitDeath(until);
}

}  // namespace rankrun
