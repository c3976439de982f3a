#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"

namespace rankrun::comm {

// This process at a breakpoint.
struct HeldRank {
  int global_rank;
  std::string place;  // of the call: "train.cc:42"
  DeathWatch deaths;
  // Returns the error of a wait since `since` that must end; empty: none.
  std::function<std::optional<Error>(TimePoint since)> find_failure;
};

// Asks the agent for a debugger, or else logs how to attach one. Stops in it, then returns
// when it lets this process go on. Also returns if the agent's debugger has ended without
// attaching.
// Errors: kCancelled after the death of another worker; that of `find_failure`.
Result<void> StopInDebugger(const HeldRank& rank);

}  // namespace rankrun::comm
