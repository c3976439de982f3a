#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/activity.h"
#include "base/status/death_watch.h"
#include "comm/world/stop_number.h"

namespace rankrun::comm {

class Attachable;

// This process at a breakpoint.
struct HeldRank {
  int global_rank;
  std::string place;  // of the call: "train.cc:42"
  DeathWatch deaths;
  // Returns the error of a wait since `since` that must end; empty: none.
  std::function<std::optional<Error>(TimePoint since)> find_failure;
};

// Stop of this thread at a breakpoint, for a debugger that has attached. The caller of Await sends
// SIGTRAP to this thread. While this object lives, the process ignores SIGTRAP, in case the
// debugger has detached.
class DebuggerStop {
 public:
  // Asks the agent for a debugger, or else logs how to attach one, and waits for it. Null: the
  // agent's debugger has ended without attaching.
  // Errors: kCancelled after the death of another worker; that of `find_failure`.
  static Result<std::unique_ptr<DebuggerStop>> Await(const HeldRank& rank);
  DebuggerStop(const DebuggerStop&) = delete;
  DebuggerStop& operator=(const DebuggerStop&) = delete;
  // The debugger has let this process go on.
  ~DebuggerStop();

 private:
  explicit DebuggerStop(const HeldRank& rank);

  const Awaited awaited_;
  const std::unique_ptr<Attachable> attachable_;
  const Stop stop_;
  const bool was_traced_;
  bool has_stopped_ = false;
};

}  // namespace rankrun::comm
