#include "comm/post_mortem.h"

#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/roll_call.h"

namespace rankrun::comm {
namespace {

std::string Ranks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks);
}

}  // namespace

PostMortem::PostMortem(store::Store& store, std::string prefix, int global_rank, int world_size)
    : store_(store),
      prefix_(std::move(prefix)),
      global_rank_(global_rank),
      world_size_(world_size) {}

void PostMortem::Report(const std::string& operation) {
  static_cast<void>(store_.Set(ReportKey(global_rank_), operation));
}

std::string PostMortem::CompareNotes(std::chrono::milliseconds grace) {
  std::vector<std::string> keys;
  for (int r = 0; r < world_size_; ++r) keys.push_back(ReportKey(r));
  const auto all = store_.Wait(keys, grace);
  if (!all && all.error().code != ErrorCode::kTimeout) return "";

  RollCall roll(world_size_, TimePoint());
  std::map<std::string, std::vector<int>> ranks_in;
  for (int r = 0; r < world_size_; ++r) {
    const auto here = store_.Check(std::span(&keys[static_cast<size_t>(r)], 1));
    if (!here || !*here) continue;
    const auto operation = store_.Get(keys[static_cast<size_t>(r)], grace);
    if (!operation) return "";
    roll.Arrive(r);
    ranks_in[*operation].push_back(r);
  }
  std::string text;
  if (!roll.complete()) text = "no word from " + Ranks(roll.Missing());
  if (ranks_in.size() < 2) return text;
  for (const auto& [operation, ranks] : ranks_in) {
    text += (text.empty() ? "" : ", ") + Ranks(ranks) + " in " + operation;
  }
  return text;
}

std::string PostMortem::FirstFailure(const std::string& cause, std::chrono::milliseconds patience) {
  const std::string key = prefix_ + "/first_failure";
  if (patience.count() > 0) {
    if (auto first = store_.Get(key, patience)) return *first;
  }
  const std::string mine = "rank " + std::to_string(global_rank_) + ": " + cause;
  const auto first = store_.CompareSet(key, "", mine);
  if (!first || first->value == mine) return "";
  return first->value;
}

std::string PostMortem::ReportKey(int global_rank) const {
  return prefix_ + "/failed/" + std::to_string(global_rank);
}

}  // namespace rankrun::comm
