#include "agent/lifecycle/restart_policy.h"

#include <algorithm>

#include "base/format.h"

namespace rankrun::agent {
namespace {

Duration PauseAfter(const RestartPolicy& policy, int failures_in_a_row) {
  if (failures_in_a_row <= 1) return Duration::zero();
  constexpr int kMaxDoublings = 30;  // the longest pause is reached earlier
  int64_t times = int64_t{1} << std::min(failures_in_a_row - 2, kMaxDoublings);
  Duration first = policy.first_pause;
  Duration longest = std::max<Duration>(first, policy.longest_pause);
  return first > longest / times ? longest : first * times;  // cannot overflow
}

std::string ReasonFor(const RestartPolicy& policy, Duration pause, int failures_in_a_row) {
  if (pause == Duration::zero()) return "at once";
  return "in " + FormatSeconds(pause) + ": " + std::to_string(failures_in_a_row) +
         " failures in a row, each within " + FormatSeconds(policy.healthy_after) + " of a start";
}

}  // namespace

RestartDecision DecideRestart(const RestartPolicy& policy, RestartHistory history,
                              Duration attempt_lasted) {
  history.consecutive_failures =
      attempt_lasted >= policy.healthy_after ? 1 : history.consecutive_failures + 1;
  RestartDecision decision;
  if (history.restarts >= policy.max_restarts) {
    std::string most = std::to_string(policy.max_restarts);
    decision.reason =
        policy.max_restarts == 0 ? "--max-restarts is 0" : most + " of " + most + " restarts used";
  } else {
    history.restarts += 1;
    decision.restarts = true;
    decision.pause = PauseAfter(policy, history.consecutive_failures);
    decision.reason = ReasonFor(policy, decision.pause, history.consecutive_failures);
  }
  decision.next = history;
  return decision;
}

}  // namespace rankrun::agent
