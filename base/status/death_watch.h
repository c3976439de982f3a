#pragma once

#include <string>

#include "base/clock.h"
#include "base/private_api.h"
#include "base/result.h"
#include "base/status/status_page.h"

namespace rankrun {

// Checks this worker's status page for the death of another worker, so that no
// wait outlasts it. A value. Without a page, which is the default, it never
// reports a death and costs a wait nothing.
// Thread: any.
class DeathWatch {
 public:
  DeathWatch() = default;
  // `page` must outlive the watch and its copies.
  explicit DeathWatch(const StatusPage& page) : page_(&page) {}

  // Returns the watch of this process's page, which is looked up in the
  // environment once.
  static DeathWatch OfThisProcess();

  // Returns whether an agent exists that would publish a death.
  bool has_agent() const { return page_ != nullptr; }

  bool has_death() const { return page_ != nullptr && page_->has_peer_death(); }

  // Returns "rank 5 was killed by SIGKILL"; empty if no death was published.
  std::string Message() const { return page_ != nullptr ? page_->PeerDeathMessage() : ""; }

  // Returns the error that ends a wait since `wait_began`: kCancelled,
  // "<message>; waited 1.2 s".
  Error ErrorSince(TimePoint wait_began) const;

  // Returns this watch, or one without a page if a death is published already.
  // For requests that a program makes although it knows of the death.
  DeathWatch OnlyNews() const { return has_death() ? DeathWatch() : *this; }

  // Returns when a wait until `deadline` must check the page next.
  TimePoint NextLook(TimePoint deadline) const;

  // Sleeps until `until` or until a death is published.
  RANKRUN_PRIVATE_API void SleepUntil(TimePoint until) const;

 private:
  const StatusPage* page_ = nullptr;
};

}  // namespace rankrun
