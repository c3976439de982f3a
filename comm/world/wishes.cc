#include "comm/world/wishes.h"

#include <map>
#include <string_view>

#include "base/roll_call.h"
#include "comm/core/time_left.h"

namespace rankrun::comm {
namespace {

constexpr std::string_view kRefused = "refused: ";

std::string WishesKey(const WishesCall& call, int rank) {
  return call.key_prefix + "/" + std::to_string(rank);
}

Result<RollCall> CallRoll(store::Store& store, const WishesCall& call, TimePoint since) {
  RollCall roll(static_cast<int>(call.ranks.size()), since);
  for (size_t i = 0; i < call.ranks.size(); ++i) {
    auto here = store.Check(std::vector<std::string>{WishesKey(call, call.ranks[i])});
    if (!here) return here.error();
    if (*here) roll.Arrive(static_cast<int>(i));
  }
  return roll;
}

// Returns `timed_out` with the missing ranks in place of keys.
Error WithMissing(store::Store& store, const WishesCall& call, TimePoint since, Error timed_out) {
  auto roll = CallRoll(store, call, since);
  if (!roll) return timed_out;
  std::vector<int> missing;
  for (int i : roll->Missing()) missing.push_back(call.ranks[static_cast<size_t>(i)]);
  timed_out.message = roll->Count(MonotonicClock().Now()) + ", missing: " + RanksInWords(missing);
  return timed_out;
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
  TimePoint since = MonotonicClock().Now();
  if (auto ok = store.Set(WishesKey(call, call.rank), wishes); !ok) return ok;
  std::vector<std::string> keys;
  for (int rank : call.ranks) keys.push_back(WishesKey(call, rank));
  auto said = store.MultiGet(keys, TimeLeft(deadline));
  if (!said && said.error().code == ErrorCode::kTimeout) {
    return WithMissing(store, call, since, said.error());
  }
  if (!said) return said.error();
  return CheckAlike(call.ranks, *said);
}

void RefuseWishes(store::Store& store, const WishesCall& call, const Error& reason) {
  static_cast<void>(store.Set(WishesKey(call, call.rank), Refusal(reason)));
}

void ForgetWishes(store::Store& store, const WishesCall& call) {
  static_cast<void>(store.Delete(WishesKey(call, call.rank)));
}

}  // namespace rankrun::comm
