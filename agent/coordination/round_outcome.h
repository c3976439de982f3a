#pragma once

#include <optional>
#include <string>

namespace rankrun::agent {

// Decision after a round was stopped.
struct RoundOutcome {
  std::optional<int> rank = {};  // global rank of the worker that was the cause
  std::string cause = {};        // empty: no round was stopped yet
  bool restarts = false;
  bool is_free = false;     // the restart is not counted
  std::string reason = {};  // "at once", or why there is no restart
  int restart_number = 0;
  int exit_code = 0;      // if the job ends
  bool is_fatal = false;  // another attempt would not help
  bool operator==(const RoundOutcome&) const = default;
};

}  // namespace rankrun::agent
