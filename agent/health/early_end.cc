#include "agent/health/early_end.h"

#include <algorithm>

#include "base/format.h"
#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

std::string Ranks(const std::set<int>& ranks) { return RanksInWords({ranks.begin(), ranks.end()}); }

}  // namespace

std::optional<EarlyEnd> FindEarlyEnd(const std::map<int, WorkerSample>& workers) {
  EarlyEnd end;
  for (const auto& [rank, worker] : workers) {
    if (worker.has_ended) {
      end.ended.insert(rank);
      end.first = std::max(end.first, worker.ended_for);
    } else if (worker.pid != 0) {
      end.running.insert(rank);
    }
  }
  if (end.ended.empty() || end.running.empty()) return std::nullopt;
  return end;
}

std::optional<Duration> SinceFirstEnd(const std::vector<WorkerSample>& workers) {
  std::optional<Duration> first;
  for (const WorkerSample& worker : workers) {
    if (worker.has_ended) first = std::max(first.value_or(Duration::zero()), worker.ended_for);
  }
  return first;
}

std::string NothingShows(const EarlyEnd& end) {
  const std::string ago = FormatSeconds(end.first) + " ago";
  const std::string ended = Ranks(end.ended);
  const bool is_one = end.running.size() == 1;
  return ended +
         (end.ended.size() == 1 ? " ended " + ago + " with exit code 0; "
                                : " ended with exit code 0, the first " + ago + "; ") +
         Ranks(end.running) + (is_one ? " still runs" : " still run") +
         ", and nothing visible shows whether " + (is_one ? "it waits" : "they wait") + " for " +
         ended;
}

std::string EndedWhileAwaited(const std::vector<int>& waiters, const std::set<int>& ended,
                              const std::string& what) {
  return "ended with exit code 0 while " + RanksInWords(waiters) +
         (waiters.size() == 1 ? " waits for " : " wait for ") +
         (ended.size() == 1 ? "it" : "them") + " in " + what;
}

bool EarlyEndNotices::IsNear(std::optional<Duration> since_first_end, Duration lead) const {
  return notice_ > Duration::zero() && since_first_end && *since_first_end + lead >= next_;
}

bool EarlyEndNotices::Take(Duration since_first_end) {
  if (!IsNear(since_first_end, Duration::zero())) return false;
  while (next_ <= since_first_end) next_ *= 2;
  return true;
}

}  // namespace rankrun::agent
