#include "base/death_watch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/format.h"

namespace rankrun {
namespace {

// The limit is 5 ms, and the kernel wakes nobody on the dot.
constexpr std::chrono::milliseconds kBetweenLooks{4};

// Null: this process is no worker. Never destroyed: a thread may wait until the
// process ends.
const StatusPage* PageOfThisProcess() {
  auto page = StatusPage::FromEnvironment();
  return page ? new StatusPage(*std::move(page)) : nullptr;
}

}  // namespace

DeathWatch DeathWatch::OfThisProcess() {
  static const StatusPage* const kPage = PageOfThisProcess();
  return kPage != nullptr ? DeathWatch(*kPage) : DeathWatch();
}

Error DeathWatch::Ended(TimePoint wait_began) const {
  return Error{ErrorCode::kCancelled,
               Word() + "; waited " + FormatSeconds(MonotonicClock().Now() - wait_began)};
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
