#pragma once

#include <string>

#include "base/clock.h"
#include "base/interruptible_call.h"
#include "base/private_api.h"
#include "base/result.h"
#include "base/status/status_page.h"

namespace rankrun {

// Checks this worker's status page for the death of another worker, so that no
// wait outlasts it. An interrupt of the waiting call (interruptible_call.h) counts
// as one. A value. Without a page, which is the default, and without a hook, it
// never reports a death and costs a wait nothing.
// Thread: any.
class DeathWatch {
 public:
  DeathWatch() = default;
  // `page` must outlive the watch and its copies.
  explicit DeathWatch(const StatusPage& page) : page_(&page) {}

  // Returns the watch of this process's page, which is looked up in the
  // environment once.
  static DeathWatch OfThisProcess();

  // Returns this watch with a message of interrupts that names the rank of this process.
  DeathWatch OfRank(int rank) const {
    DeathWatch watch = *this;
    watch.rank_ = rank;
    return watch;
  }

  // Returns whether an agent exists that would publish a death.
  bool has_agent() const { return page_ != nullptr; }

  // Returns whether a wait must call has_death() from time to time.
  bool looks() const { return has_agent() || (asks_ && InterruptibleCall::IsUnderWay()); }

  bool has_death() const {
    if (page_ != nullptr && page_->has_peer_death()) return true;
    return asks_ && InterruptibleCall::IsInterrupted();
  }

  // Returns "rank 5 was killed by SIGKILL", or "rank 0 was interrupted by the program",
  // without "rank 0 was" if no rank is known; empty if there is no death.
  RANKRUN_PRIVATE_API std::string Message() const;

  // Returns the error that ends a wait since `wait_began`: kCancelled,
  // "<message>; waited 1.2 s".
  Error ErrorSince(TimePoint wait_began) const;

  // Returns this watch, or one that reports none if there is a death already.
  // For requests that a program makes although it knows of the death.
  DeathWatch OnlyNews() const { return has_death() ? DeathWatch(nullptr, false) : *this; }

  // Returns when a wait until `deadline` must check the page next.
  TimePoint NextLook(TimePoint deadline) const;

  // Sleeps until `until` or until a death is published.
  RANKRUN_PRIVATE_API void SleepUntil(TimePoint until) const;

 private:
  DeathWatch(const StatusPage* page, bool asks) : page_(page), asks_(asks) {}

  const StatusPage* page_ = nullptr;
  bool asks_ = true;  // whether the program has interrupted its call
  int rank_ = -1;     // of this process; -1: unknown
};

}  // namespace rankrun
