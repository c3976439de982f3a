#include "cli/trace_clocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rankrun::cli {
namespace {

constexpr int64_t kSpan = 1'000'000'000;  // nanoseconds

// Returns whether no rank leaves such a call before all have entered it.
bool IsBarrierLike(const TracedOperation& operation) {
  enum : uint8_t { kAllReduce = 1, kAllGather = 4, kReduceScatter = 7, kBarrier = 9 };
  switch (operation.kind) {
    case kAllReduce:
    case kAllGather:
    case kReduceScatter:
      return operation.count > 0;  // without data they may return at once
    case kBarrier:
    case trace_kind::kMonitoredBarrier:
      return true;
    default:
      return false;
  }
}

// Returns by how much two clocks may drift apart in a time; 0 if it is negative.
int64_t DriftIn(int64_t nanoseconds) {
  constexpr int64_t kBillionth = 1'000'000'000;
  constexpr int64_t kDrift = 50'000;  // billionths; oscillators are good to 20 to 50 millionths
  return std::max<int64_t>(0, nanoseconds / (kBillionth / kDrift));
}

}  // namespace

int64_t TimeSince(int64_t begin, int64_t time) {
  constexpr int64_t kMax = int64_t{1} << 62;
  int64_t difference = 0;
  if (__builtin_sub_overflow(time, begin, &difference)) return time < begin ? -kMax : kMax;
  return std::clamp(difference, -kMax, kMax);
}

std::string BootOf(const Trace& trace) { return trace.boot.empty() ? trace.host : trace.boot; }

size_t TraceClocks::HostOf(const Trace& trace) const { return indices_.at(BootOf(trace)); }

void TraceClocks::Add(const Trace& trace) {
  auto [at, is_new] = indices_.emplace(BootOf(trace), hosts_.size());
  if (is_new) hosts_.push_back({.name = trace.host, .realtime_offset = trace.realtime_offset});
  ranges_.resize(hosts_.size());
  Range& range = ranges_[at->second];
  std::vector<int> before(trace.groups.size());
  std::map<uint64_t, int> seen;
  for (size_t i = 0; i < before.size(); ++i) before[i] = seen[trace.groups[i].key]++;
  for (const TracedOperation& operation : trace.operations) {
    range.first = std::min(range.first, operation.begin);
    range.last = std::max(range.last, operation.end);
    const bool counts = operation.is_finished && !operation.has_failed && operation.group >= 0;
    if (!counts || !IsBarrierLike(operation)) continue;
    const auto group = static_cast<size_t>(operation.group);
    Visit& visit = calls_[{trace.attempt, trace.groups[group].key, before[group], operation.kind,
                           operation.number}][at->second];
    visit.last_begin = std::max(visit.last_begin, operation.begin);
    visit.first_end = std::min(visit.first_end, operation.end);
  }
}

void TraceClocks::Align() {
  spans_.resize(hosts_.size());
  for (size_t host = 1; host < hosts_.size(); ++host) AlignHost(host);
  calls_.clear();
}

void TraceClocks::AlignHost(size_t host) {
  std::map<int64_t, Bounds> by_span;
  std::map<int64_t, std::pair<int64_t, int64_t>> times;  // of the calls of both bounds
  for (const auto& [key, visits] : calls_) {
    auto reference = visits.find(0);
    auto other = visits.find(host);
    if (reference == visits.end() || other == visits.end()) continue;
    const int64_t time = other->second.last_begin;
    Bounds& bounds = by_span[time / kSpan];
    auto& [at_lower, at_upper] = times[time / kSpan];
    const int64_t lower = reference->second.last_begin - other->second.first_end;
    const int64_t upper = reference->second.first_end - other->second.last_begin;
    if (lower > bounds.lower) at_lower = time;
    if (upper < bounds.upper) at_upper = time;
    bounds.lower = std::max(bounds.lower, lower);
    bounds.upper = std::min(bounds.upper, upper);
  }
  if (by_span.empty()) return;
  int64_t best = INT64_MAX;
  for (auto& [span, bounds] : by_span) {
    bounds.at = times[span].first + (times[span].second - times[span].first) / 2;
    best = std::min(best, bounds.error());
  }
  // A span with few calls may know less than the line between its neighbours.
  constexpr int64_t kMargin = 10'000;
  int64_t error = 0;
  for (const auto& [span, bounds] : by_span) {
    const bool is_loose = bounds.upper > bounds.lower && bounds.error() > 4 * best + kMargin;
    if (is_loose) continue;
    spans_[host].push_back(bounds);
    error = std::max(error, bounds.error());
  }
  const Bounds& first = spans_[host].front();
  const Bounds& last = spans_[host].back();
  hosts_[host].error = std::max({error, first.error() + DriftIn(first.at - ranges_[host].first),
                                 last.error() + DriftIn(ranges_[host].last - last.at)});
}

int64_t TraceClocks::Aligned(const Trace& trace, int64_t monotonic) const {
  const size_t host = HostOf(trace);
  const auto& spans = spans_[host];
  if (spans.empty()) {
    return monotonic + hosts_[host].realtime_offset - hosts_[0].realtime_offset;
  }
  auto after = std::ranges::upper_bound(spans, monotonic, {}, &Bounds::at);
  if (after == spans.begin()) return monotonic + spans.front().middle();
  const Bounds& before = *std::prev(after);
  if (after == spans.end()) return monotonic + before.middle();
  const double part =
      static_cast<double>(monotonic - before.at) / static_cast<double>(after->at - before.at);
  const auto change = static_cast<double>(after->middle() - before.middle());
  return monotonic + before.middle() + static_cast<int64_t>(part * change);
}

}  // namespace rankrun::cli
