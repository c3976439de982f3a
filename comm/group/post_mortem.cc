#include "comm/group/post_mortem.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/roll_call.h"

namespace rankrun::comm {
namespace {

// Longest wait in the store between two checks whether the group ends.
constexpr std::chrono::milliseconds kSlice{50};

}  // namespace

PostMortem::PostMortem(store::Store& store, std::string prefix, int rank, std::vector<int> names)
    : store_(store), prefix_(std::move(prefix)), rank_(rank), names_(std::move(names)) {}

void PostMortem::Report(const std::string& operation) {
  static_cast<void>(store_.Set(ReportKey(rank_), operation));
}

bool PostMortem::AwaitReports(const std::vector<std::string>& keys, std::chrono::milliseconds grace,
                              const std::atomic<bool>& is_ending) {
  const TimePoint deadline = MonotonicClock().Now() + grace;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    auto all = store_.Wait(keys, std::clamp(left, std::chrono::milliseconds(0), kSlice));
    if (all) return true;
    if (all.error().code != ErrorCode::kTimeout) return false;
    if (left <= kSlice || is_ending.load()) return true;
  }
}

std::string PostMortem::CompareReports(std::chrono::milliseconds grace,
                                       const std::atomic<bool>& is_ending) {
  int world_size = static_cast<int>(names_.size());
  std::vector<std::string> keys;
  for (int r = 0; r < world_size; ++r) keys.push_back(ReportKey(r));
  if (!AwaitReports(keys, grace, is_ending)) return "";

  RollCall roll(world_size, TimePoint());
  std::map<std::string, std::vector<int>> ranks_in;
  for (int r = 0; r < world_size; ++r) {
    auto here = store_.Check(std::span(&keys[static_cast<size_t>(r)], 1));
    if (!here || !*here) continue;
    auto operation = store_.Get(keys[static_cast<size_t>(r)], grace);
    if (!operation) return "";
    roll.Arrive(r);
    ranks_in[*operation].push_back(r);
  }
  std::string text;
  if (!roll.complete()) text = "no report from " + Named(roll.Missing());
  if (ranks_in.size() < 2) return text;
  for (const auto& [operation, ranks] : ranks_in) {
    text += (text.empty() ? "" : ", ") + Named(ranks) + " in " + operation;
  }
  return text;
}

std::optional<TimedText> PostMortem::FirstFailure(const std::string& cause,
                                                  std::chrono::milliseconds patience) {
  std::string key = prefix_ + "/first_failure";
  if (patience.count() > 0) {
    if (auto first = store_.Get(key, patience)) return TimedTextIn(*first);
  }
  std::string mine = WithTime(Named({rank_}) + ": " + cause);
  auto first = store_.CompareSet(key, "", mine);
  if (!first || first->value == mine) return std::nullopt;
  return TimedTextIn(first->value);
}

std::string PostMortem::Named(const std::vector<int>& ranks) const {
  std::vector<int> names;
  for (int rank : ranks) names.push_back(names_[static_cast<size_t>(rank)]);
  return RanksInWords(names);
}

std::string PostMortem::ReportKey(int rank) const {
  return prefix_ + "/failed/" + std::to_string(rank);
}

}  // namespace rankrun::comm
