#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"

namespace rankrun::agent {

// How often, and how soon, the workers are started again after a failure.
struct RestartPolicy {
  int max_restarts = 0;                             // of the whole job
  std::chrono::milliseconds first_pause{1'000};     // before the second restart in a row
  std::chrono::milliseconds longest_pause{30'000};  // each pause is twice the one before
  std::chrono::milliseconds healthy_after{
      300'000};  // an attempt that lasts this long breaks the row
};

struct RestartHistory {
  int restarts = 0;
  int row = 0;  // failures in a row, each of an attempt that was not healthy
  bool operator==(const RestartHistory&) const = default;
};

struct RestartDecision {
  bool restarts = false;
  Duration pause{};
  std::string reason;  // "at once", "in 2.0 s: ..."; why not, if it is no restart
  RestartHistory next;
};

// Decides on a failed attempt. The first restart comes at once, since most
// failures are accidents; a job that fails again and again gets pauses, so that
// it does not wear down a file system or a scheduler. Pure.
RestartDecision DecideRestart(const RestartPolicy& policy, RestartHistory history,
                              Duration attempt_lasted);

}  // namespace rankrun::agent
