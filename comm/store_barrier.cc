#include "comm/store_barrier.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankrun::comm {
namespace {

constexpr char kPassed[] = "ok";

std::chrono::milliseconds Remaining(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));  // 0 would mean "for ever" to a store
}

Error OfStore(Error error) {
  if (error.code != ErrorCode::kCancelled) error.code = ErrorCode::kProtocol;
  return error;
}

bool TimedOut(const Error& error) { return error.code == ErrorCode::kTimeout; }

}  // namespace

StoreBarrier::StoreBarrier(store::Store& store, std::string prefix, int rank,
                           std::vector<int> names)
    : store_(store), prefix_(std::move(prefix)), rank_(rank), names_(std::move(names)) {}

Result<void> StoreBarrier::Pass(std::chrono::milliseconds timeout, bool name_all) {
  const TimePoint now = std::chrono::steady_clock::now();
  const Round round{
      .number = next_++, .since = now, .deadline = now + timeout, .name_all = name_all};
  Result<std::string> verdict = Verdict(round);
  if (!verdict) return OfStore(std::move(verdict).error());
  if (*verdict != kPassed) return Error{ErrorCode::kTimeout, *verdict};
  return {};
}

Result<std::string> StoreBarrier::Verdict(const Round& round) {
  if (auto ok = store_.Set(ArrivedKey(round.number, rank_), ""); !ok) {
    return std::move(ok).error();
  }
  return rank_ == 0 ? KeepRoll(round) : AwaitVerdict(round);
}

Result<std::string> StoreBarrier::KeepRoll(const Round& round) {
  const std::vector<std::string> verdict_key{VerdictKey(round.number)};
  Result<bool> settled = store_.Check(verdict_key);
  if (!settled) return std::move(settled).error();
  if (*settled) return store_.Get(verdict_key[0], Remaining(round.deadline));

  std::vector<std::string> keys;
  for (int r = 0; r < world_size(); ++r) keys.push_back(ArrivedKey(round.number, r));
  if (auto all = store_.Wait(keys, Remaining(round.deadline)); !all) {
    if (TimedOut(all.error())) return SettleByRoll(round);
    return std::move(all).error();
  }
  Result<std::string> verdict = Settle(round, kPassed);
  // Everybody has come, hence has left all barriers before this one.
  if (auto ok = DeleteKeysBefore(round.number); !ok) return std::move(ok).error();
  return verdict;
}

Result<std::string> StoreBarrier::AwaitVerdict(const Round& round) {
  Result<std::string> verdict = store_.Get(VerdictKey(round.number), Remaining(round.deadline));
  if (!verdict && TimedOut(verdict.error())) return SettleByRoll(round);
  return verdict;
}

Result<RollCall> StoreBarrier::CallRoll(const Round& round) {
  RollCall roll(world_size(), round.since);
  for (int r = 0; r < world_size(); ++r) {
    const std::vector<std::string> key{ArrivedKey(round.number, r)};
    Result<bool> here = store_.Check(key);
    if (!here) return std::move(here).error();
    if (*here) roll.Arrive(r);
  }
  return roll;
}

Result<std::string> StoreBarrier::SettleByRoll(const Round& round) {
  Result<RollCall> roll = CallRoll(round);
  if (!roll) return std::move(roll).error();
  if (roll->complete()) return Settle(round, kPassed);
  std::vector<int> missing;
  for (const int rank : roll->Missing()) missing.push_back(names_[static_cast<size_t>(rank)]);
  if (!round.name_all) missing.resize(1);
  return Settle(
      round, roll->Count(std::chrono::steady_clock::now()) + ", missing: " + RanksInWords(missing));
}

// The first verdict stands: two ranks may run out of time at once, or one
// while rank 0 sees the last one come.
Result<std::string> StoreBarrier::Settle(const Round& round, const std::string& verdict) {
  auto stored = store_.CompareSet(VerdictKey(round.number), "", verdict);
  if (!stored) return std::move(stored).error();
  return stored->value;
}

Result<void> StoreBarrier::DeleteKeysBefore(uint64_t number) {
  for (; first_kept_ < number; ++first_kept_) {
    for (int r = 0; r < world_size(); ++r) {
      if (auto ok = store_.Delete(ArrivedKey(first_kept_, r)); !ok) return std::move(ok).error();
    }
    if (auto ok = store_.Delete(VerdictKey(first_kept_)); !ok) return std::move(ok).error();
  }
  return {};
}

std::string StoreBarrier::ArrivedKey(uint64_t number, int rank) const {
  return prefix_ + "/" + std::to_string(number) + "/arrived/" + std::to_string(rank);
}

std::string StoreBarrier::VerdictKey(uint64_t number) const {
  return prefix_ + "/" + std::to_string(number) + "/verdict";
}

}  // namespace rankrun::comm
