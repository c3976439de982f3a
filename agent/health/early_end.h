#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/health/worker_sample.h"
#include "base/clock.h"

// Workers that have ended with exit code 0 while others of the job run. Pure.
namespace rankrun::agent {

struct EarlyEnd {
  std::set<int> ended{};    // global ranks
  std::set<int> running{};  // global ranks
  Duration first{};         // since the first of these ends
};

// Returns nothing unless some workers have ended and others run. `workers`: by global rank.
std::optional<EarlyEnd> FindEarlyEnd(const std::map<int, WorkerSample>& workers);

// Returns the time since the first end; nothing if no worker has ended.
std::optional<Duration> SinceFirstEnd(const std::vector<WorkerSample>& workers);

// Returns "rank 0 ended 30.0 s ago with exit code 0; rank 1 still runs, and nothing visible shows
// whether it waits for rank 0".
std::string NothingShows(const EarlyEnd& end);

// Returns "ended with exit code 0 while ranks 1-3 wait for it in all_reduce".
std::string EndedWhileAwaited(const std::vector<int>& waiters, const std::set<int>& ended,
                              const std::string& what);

// Times of notices about one early end: after `notice`, twice `notice`, and so on.
class EarlyEndNotices {
 public:
  // `notice` 0: none.
  explicit EarlyEndNotices(Duration notice) : notice_(notice), next_(notice) {}

  void BeginAttempt() { next_ = notice_; }
  // Whether a notice comes within `lead`.
  bool IsNear(std::optional<Duration> since_first_end, Duration lead) const;
  // Whether a notice is due. The next one then is due later.
  bool Take(Duration since_first_end);

 private:
  const Duration notice_;
  Duration next_;
};

}  // namespace rankrun::agent
