#include "agent/health/quiet_watch.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr int kGrowth = 4;    // of the time until the next reading
constexpr int kFirstGap = 3;  // between readings, in times of a notice
// A reading takes up to half a second of a core.
constexpr Duration kMaxGap = std::chrono::minutes(10);

bool ShowsWaits(const WorkerSample& sample) {
  return !sample.groups.empty() || !sample.has_all_groups || sample.uses_library ||
         !sample.awaited.empty();
}

}  // namespace

Duration QuietWatch::LongestQuiet(const std::vector<WorkerSample>& samples, TimePoint now) {
  Duration longest{};
  for (const WorkerSample& sample : samples) {
    if (sample.pid == 0 || sample.has_ended) continue;
    auto [place, is_new] = workers_.try_emplace(sample.global_rank);
    Worker& worker = place->second;
    const Duration used = sample.cpu_time - worker.cpu_time;
    if (is_new || used * kQuietShare >= now - worker.looked) worker.quiet_since = now;
    worker.cpu_time = sample.cpu_time;
    worker.looked = now;
    longest = std::max(longest, now - worker.quiet_since);
  }
  return longest;
}

std::optional<Duration> QuietWatch::Look(const std::vector<WorkerSample>& samples, TimePoint now) {
  if (notice_ == Duration::zero()) return std::nullopt;
  const Duration longest = LongestQuiet(samples, now);
  if (longest < notice_ || std::ranges::any_of(samples, ShowsWaits)) {
    next_ = notice_;
    return std::nullopt;
  }
  const bool is_soon = read_ && now - *read_ < gap_;
  if (longest < next_ || is_soon) return std::nullopt;
  next_ = kGrowth * longest;
  gap_ = std::min(std::max(kGrowth * gap_, kFirstGap * notice_), kMaxGap);
  read_ = now;
  return longest;
}

}  // namespace rankrun::agent
