#include "comm/world/wishes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/group/store_barrier.h"
#include "comm/world/group_members.h"

namespace rankrun::comm {
namespace {

constexpr std::string_view kRefused = "refused: ";
constexpr std::string_view kWants = " wants ";

StoreBarrier BarrierOf(store::Store& store, const WishesCall& call) {
  return {store, call.key_prefix + "/barrier", IndexOf(call.ranks, call.rank), call.ranks};
}

// Returns the end of "rank 1 wants <wishes>" from the verb on.
std::string_view WishesIn(std::string_view text) {
  return text.substr(std::min(text.find(kWants), text.size()));
}

}  // namespace

std::string Refusal(const Error& reason) { return std::string(kRefused) + reason.message; }

Result<void> CheckAlike(const std::vector<int>& ranks, const std::vector<std::string>& said) {
  std::map<std::string, std::vector<int>> ranks_saying;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (said[i].starts_with(kRefused)) {
      return Error{ErrorCode::kInvalid,
                   RanksInWords({ranks[i]}) + " refused it: " + said[i].substr(kRefused.size())};
    }
    ranks_saying[said[i]].push_back(ranks[i]);
  }
  if (ranks_saying.size() < 2) return {};
  std::string text;
  for (const auto& [wishes, who] : ranks_saying) {
    text += (text.empty() ? "" : "; ") + RanksInWords(who) +
            (who.size() == 1 ? " wants " : " want ") + wishes;
  }
  return Error{ErrorCode::kMismatch, text};
}

Result<void> CompareWishes(store::Store& store, const WishesCall& call, const std::string& wishes,
                           TimePoint deadline) {
  StoreBarrier barrier = BarrierOf(store, call);
  const std::string own = RanksInWords({call.rank}) + std::string(kWants) + wishes;
  auto first = store.CompareSet(call.key_prefix + "/wishes", "", own);
  if (!first) return first.error();
  if (WishesIn(first->value) == WishesIn(own)) return barrier.Pass(TimeLeft(deadline));
  Error error{ErrorCode::kMismatch, first->value + "; " + own};
  static_cast<void>(barrier.Refuse(error));
  return error;
}

void RefuseWishes(store::Store& store, const WishesCall& call, const Error& reason) {
  Error error = Error(reason).In(RanksInWords({call.rank}) + " refused it");
  static_cast<void>(BarrierOf(store, call).Refuse(error));
}

}  // namespace rankrun::comm
