#include "agent/guardian/next_incarnation.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "agent/lifecycle/restart_policy.h"
#include "base/format.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQuick{1'000};  // a shorter life suggests that the next one fails as well
constexpr int kFreeDeaths = 4;         // quick deaths in a row without pauses
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kMaxPause{30'000};

std::string StartingAgain(const JobRecord& next, Duration pause) {
  std::string words = "starting again";
  if (pause > Duration::zero()) words += " in " + FormatSeconds(pause);
  if (!next.restarts) return words;
  return words + ": restart " + std::to_string(next.restarts->used) + " of " +
         std::to_string(next.restarts->most);
}

}  // namespace

NextIncarnation DecideNextIncarnation(const JobRecord& last, int quick_deaths, Duration lived) {
  NextIncarnation next;
  if (!last.may_restart) return next;
  next.quick_deaths = lived < kQuick ? quick_deaths + 1 : 0;
  RestartPolicy policy{
      .first_pause = kFirstPause, .longest_pause = kMaxPause, .healthy_after = kQuick};
  policy.max_restarts = last.restarts ? last.restarts->most : std::numeric_limits<int>::max();
  RestartHistory history{.restarts = last.restarts ? last.restarts->used : 0,
                         .consecutive_failures = std::max(0, quick_deaths - kFreeDeaths + 1)};
  RestartDecision decision = DecideRestart(policy, history, lived);
  if (!decision.restarts) {
    if (policy.max_restarts > 0) next.words = decision.reason;
    return next;
  }
  next.starts = true;
  next.pause = decision.pause;
  next.record = last;
  next.record.incarnation += 1;
  if (next.record.restarts) next.record.restarts->used += 1;
  next.words = StartingAgain(next.record, next.pause);
  return next;
}

}  // namespace rankrun::agent
