#include "agent/health/progress.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr double kShare = 0.05;  // of a core: the threads of an idle program use less
// A main thread that looks ten times a second whether it may continue uses less of a core.
constexpr double kMainShare = 0.01;
constexpr uint64_t kBytes = 4'096;  // of files or from outside the job

bool HasUsed(Duration before, Duration now, Duration between, double share) {
  return between > Duration::zero() &&
         now - before >=
             std::chrono::duration_cast<Duration>(std::chrono::duration<double>(between) * share);
}

// A counter of several processes or connections falls when one of them ends.
bool HasGrown(uint64_t before, uint64_t now, uint64_t by) { return now >= before + by; }

}  // namespace

bool ShowsWork(const WorkFacts& before, const WorkFacts& now, Duration between, bool calls_peer) {
  const bool wakes_for_data = calls_peer || !now.knows_connections;
  return HasUsed(before.cpu_time, now.cpu_time, between, kShare) ||
         HasUsed(before.main_cpu_time, now.main_cpu_time, between, kMainShare) ||
         HasGrown(before.io_bytes, now.io_bytes, kBytes) ||
         HasGrown(before.received_bytes, now.received_bytes, kBytes) ||
         HasGrown(before.written_bytes, now.written_bytes, 1) ||
         (wakes_for_data && HasGrown(before.wakes, now.wakes, 1));
}

std::optional<TimePoint> LastExchange(std::vector<ConnectionTime> ends) {
  std::ranges::sort(ends, {}, &ConnectionTime::id);
  std::optional<TimePoint> last;
  for (size_t i = 1; i < ends.size(); ++i) {
    const ConnectionTime &one = ends[i - 1], &other = ends[i];
    if (one.id != other.id || one.rank == other.rank) continue;
    last = std::max({last.value_or(one.received), one.received, other.received});
  }
  return last;
}

}  // namespace rankrun::agent
