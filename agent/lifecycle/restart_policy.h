#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"

namespace rankrun::agent {

// How often and how soon the workers restart after a failure.
struct RestartPolicy {
  int max_restarts = 0;                              // of the whole job
  std::chrono::milliseconds first_pause{1'000};      // before the second restart in a row
  std::chrono::milliseconds longest_pause{30'000};   // pauses double up to this one
  std::chrono::milliseconds healthy_after{300'000};  // an attempt this long ends the row
};

struct RestartHistory {
  int restarts = 0;
  int consecutive_failures = 0;  // of attempts that were not healthy
  bool operator==(const RestartHistory&) const = default;
};

struct RestartDecision {
  bool restarts = false;
  Duration pause{};
  std::string reason;  // "at once", "in 2.0 s: ...", or why there is no restart
  RestartHistory next;
};

// Decides whether and when to restart after a failed attempt. The first restart
// is immediate because most failures are accidents. Repeated failures get
// pauses, so that the job does not wear down a file system or a scheduler.
// Pure.
RestartDecision DecideRestart(const RestartPolicy& policy, RestartHistory history,
                              Duration attempt_lasted);

}  // namespace rankrun::agent
