#include "agent/report/left_out.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "agent/report/verdict.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxWays = 16;
constexpr size_t kMaxBounds = 2 * 64;

bool AreAlike(const LeftOut& a, const LeftOut& b) {
  if (a.is_mixed || b.is_mixed) return a.is_mixed == b.is_mixed;
  return a.kind == b.kind && a.exit == b.exit && a.sent_signal == b.sent_signal;
}

// Returns the ranges of both, in order, joined where they meet.
std::vector<int> Union(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::pair<int, int>> ranges;
  for (const auto* bounds : {&a, &b}) {
    for (size_t i = 0; i + 1 < bounds->size(); i += 2) {
      ranges.emplace_back((*bounds)[i], (*bounds)[i + 1]);
    }
  }
  std::ranges::sort(ranges);
  std::vector<int> joined;
  for (const auto& [first, last] : ranges) {
    if (!joined.empty() && first - 1 <= joined.back()) {
      joined.back() = std::max(joined.back(), last);
    } else {
      joined.insert(joined.end(), {first, last});
    }
  }
  return joined;
}

void Add(const LeftOut& more, std::vector<LeftOut>& all) {
  auto found = std::ranges::find_if(all, [&](const LeftOut& one) { return AreAlike(one, more); });
  if (found == all.end() && all.size() < kMaxWays) {
    all.push_back(more);
    return;
  }
  if (found == all.end()) {
    found = all.end() - 1;
    found->is_mixed = true;
  }
  found->count += more.count;
  found->bounds = Union(found->bounds, more.bounds);
  if (found->bounds.size() > kMaxBounds) found->bounds.resize(kMaxBounds);
}

// Returns how many ranks the ranges list.
int64_t Listed(const LeftOut& left_out) {
  int64_t listed = 0;
  for (size_t i = 0; i + 1 < left_out.bounds.size(); i += 2) {
    listed += int64_t{left_out.bounds[i + 1]} - left_out.bounds[i] + 1;
  }
  return listed;
}

}  // namespace

void LeaveOut(std::span<const WorkerRecord> workers, std::vector<LeftOut>& all) {
  std::vector<const WorkerRecord*> in_order;
  for (const WorkerRecord& worker : workers) in_order.push_back(&worker);
  std::ranges::sort(in_order, {}, &WorkerRecord::global_rank);
  std::vector<LeftOut> ranges;  // of neighbours that ended alike
  for (const WorkerRecord* worker : in_order) {
    const int rank = worker->global_rank;
    LeftOut one{.kind = EndingOf(*worker).kind,
                .exit = worker->exit.value_or(ProcessExit{}),
                .sent_signal = worker->sent_signal,
                .bounds = {rank, rank},
                .count = 1};
    const bool goes_on =
        !ranges.empty() && AreAlike(ranges.back(), one) && ranges.back().bounds.back() == rank - 1;
    if (!goes_on) {
      ranges.push_back(std::move(one));
      continue;
    }
    ++ranges.back().bounds.back();
    ++ranges.back().count;
  }
  LeaveOut(ranges, all);
}

void LeaveOut(const std::vector<LeftOut>& part, std::vector<LeftOut>& all) {
  for (const LeftOut& more : part) Add(more, all);
}

std::string RanksOf(const LeftOut& left_out) {
  std::string text;
  for (size_t i = 0; i + 1 < left_out.bounds.size(); i += 2) {
    const int first = left_out.bounds[i], last = left_out.bounds[i + 1];
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(last);
  }
  const int64_t others = left_out.count - Listed(left_out);
  if (others > 0) text += " and " + std::to_string(others) + " others";
  return (left_out.count == 1 ? "rank " : "ranks ") + text;
}

}  // namespace rankrun::agent
