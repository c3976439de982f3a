#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/status_page.h"

namespace rankrun {

// Looks whether the agent has said on this worker's status page that another
// worker has died, so that no wait outlasts it. A value; by default one to
// which nobody says anything, and which costs a wait nothing.
// Thread: any.
class DeathWatch {
 public:
  DeathWatch() = default;
  // `page` outlives it and its copies.
  explicit DeathWatch(const StatusPage& page) : page_(&page) {}

  // Of the page in the environment, which is looked for once.
  static DeathWatch OfThisProcess();

  // Whether there is an agent that would say so.
  bool has_teller() const { return page_ != nullptr; }

  bool told() const { return page_ != nullptr && page_->death_told(); }

  // "rank 5 was killed by SIGKILL"; empty: none told.
  std::string Word() const { return page_ != nullptr ? page_->DeathWord() : ""; }

  // What ends a wait that began then: kCancelled, "<the word>; waited 1.2 s".
  Error Ended(TimePoint wait_began) const;

  // The same, or one of nobody if a death has been told: for what a program
  // asks though it knows of that.
  DeathWatch News() const { return told() ? DeathWatch() : *this; }

  // When a wait until `deadline` has to look for the first time, or again.
  TimePoint NextLook(TimePoint deadline) const;

  // Until then, or until a death is told.
  void SleepUntil(TimePoint until) const;

 private:
  const StatusPage* page_ = nullptr;
};

}  // namespace rankrun
