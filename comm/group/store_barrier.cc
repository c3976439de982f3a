#include "comm/group/store_barrier.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/interruptible_call.h"
#include "comm/core/time_left.h"
#include "comm/group/failure_time.h"

namespace rankrun::comm {
namespace {

constexpr char kPassed[] = "ok";
constexpr std::string_view kRefused = "refused ";  // followed by a code letter and the message
constexpr std::string_view kMissing = "missing ";  // followed by the time and the message
constexpr char kFirstCode = 'a';

Error AsStoreError(Error error) {
  if (error.code != ErrorCode::kCancelled) error.code = ErrorCode::kProtocol;
  return error;
}

bool TimedOut(const Error& error) { return error.code == ErrorCode::kTimeout; }

std::string EncodeRefusal(const Error& reason) {
  auto letter = static_cast<char>(kFirstCode + static_cast<int>(reason.code));
  return std::string(kRefused) + letter + reason.message;
}

Error Damaged() { return {ErrorCode::kProtocol, "the verdict in the store is damaged"}; }

// `came`: when this rank began the barrier.
Error DecodeTimeout(const std::string& verdict, WallTime came) {
  auto failure = TimedTextIn(verdict.substr(kMissing.size()));
  if (!failure) return Damaged();
  return {ErrorCode::kTimeout, BeforeThisRank(*failure, came) + failure->text};
}

Error DecodeRefusal(const std::string& verdict) {
  if (!verdict.starts_with(kRefused)) return Damaged();
  std::string text = verdict.substr(kRefused.size());
  int code = text.empty() ? -1 : text[0] - kFirstCode;
  if (code < 0 || code > static_cast<int>(ErrorCode::kSystem)) return Damaged();
  return Error{static_cast<ErrorCode>(code), text.substr(1)};
}

}  // namespace

StoreBarrier::StoreBarrier(store::Store& store, std::string prefix, int rank,
                           std::vector<int> names)
    : store_(store), prefix_(std::move(prefix)), rank_(rank), names_(std::move(names)) {}

Result<void> StoreBarrier::Pass(std::chrono::milliseconds timeout, bool name_all) {
  TimePoint now = std::chrono::steady_clock::now();
  const WallTime came = std::chrono::system_clock::now();
  Round round{.number = next_++, .since = now, .deadline = now + timeout, .name_all = name_all};
  Result<std::string> verdict = Verdict(round);
  if (!verdict) return AsStoreError(std::move(verdict).error());
  if (verdict->starts_with(kMissing)) return DecodeTimeout(*verdict, came);
  if (*verdict != kPassed) return DecodeRefusal(*verdict);
  if (rank_ != 0) return {};
  // All ranks have arrived here, so they have left all earlier barriers.
  if (auto ok = DeleteKeysBefore(round.number); !ok) return AsStoreError(std::move(ok).error());
  return {};
}

Error StoreBarrier::Refuse(const Error& reason) {
  auto verdict = RecordVerdict(next_++, EncodeRefusal(reason));
  if (!verdict) return reason;
  if (!verdict->starts_with(kMissing)) return DecodeRefusal(*verdict);
  return DecodeTimeout(*verdict, WallTime());
}

// A barrier that is over keeps its verdict.
void StoreBarrier::End(store::Store& store, const Error& reason) const {
  const uint64_t next = next_.load();
  for (uint64_t number = next == 0 ? 0 : next - 1; number <= next; ++number) {
    static_cast<void>(store.CompareSet(VerdictKey(number), "", EncodeRefusal(reason)));
  }
}

bool StoreBarrier::HasFailed() {
  auto exists = store_.Check(std::vector<std::string>{VerdictKey(next_)});
  return exists && *exists;
}

Result<std::string> StoreBarrier::Verdict(const Round& round) {
  // Counts before it is seen, so that a rank that stops in between is missing in
  // the roll call.
  Result<int64_t> here = store_.Add(CountKey(round.number), 1);
  if (!here) return here.error();
  if (*here == world_size()) return RecordVerdict(round.number, kPassed);
  if (auto ok = store_.Set(ArrivedKey(round.number, rank_), ""); !ok) {
    return std::move(ok).error();
  }
  Result<std::string> verdict = store_.Get(VerdictKey(round.number), TimeLeft(round.deadline));
  if (!verdict && TimedOut(verdict.error())) return RecordRollCall(round);
  if (!verdict && InterruptibleCall::WasInterrupted()) {  // the others must not pass without it
    const std::string rank = RanksInWords({names_[static_cast<size_t>(rank_)]});
    return RecordVerdict(round.number, EncodeRefusal({ErrorCode::kSystem,
                                                      rank + " was interrupted by the program"}));
  }
  return verdict;
}

Result<RollCall> StoreBarrier::CallRoll(const Round& round) {
  RollCall roll(world_size(), round.since);
  for (int r = 0; r < world_size(); ++r) {
    std::vector<std::string> key{ArrivedKey(round.number, r)};
    Result<bool> here = store_.Check(key);
    if (!here) return std::move(here).error();
    if (*here) roll.Arrive(r);
  }
  return roll;
}

Result<std::string> StoreBarrier::RecordRollCall(const Round& round) {
  Result<RollCall> roll = CallRoll(round);
  if (!roll) return std::move(roll).error();
  std::vector<int> missing;
  for (int rank : roll->Missing()) missing.push_back(names_[static_cast<size_t>(rank)]);
  if (!round.name_all) missing.resize(1);
  const std::string text =
      roll->Count(std::chrono::steady_clock::now()) + ", missing: " + RanksInWords(missing);
  return RecordVerdict(round.number, std::string(kMissing) + WithTime(text));
}

// Records the first verdict and returns it. Two ranks may time out at once, or
// one while the last rank arrives.
Result<std::string> StoreBarrier::RecordVerdict(uint64_t number, const std::string& verdict) {
  auto stored = store_.CompareSet(VerdictKey(number), "", verdict);
  if (!stored) return std::move(stored).error();
  return stored->value;
}

Result<void> StoreBarrier::DeleteKeysBefore(uint64_t number) {
  for (; first_kept_ < number; ++first_kept_) {
    for (int r = 0; r < world_size(); ++r) {
      if (auto ok = store_.Delete(ArrivedKey(first_kept_, r)); !ok) return std::move(ok).error();
    }
    for (const std::string& key : {CountKey(first_kept_), VerdictKey(first_kept_)}) {
      if (auto ok = store_.Delete(key); !ok) return std::move(ok).error();
    }
  }
  return {};
}

std::string StoreBarrier::ArrivedKey(uint64_t number, int rank) const {
  return prefix_ + "/" + std::to_string(number) + "/arrived/" + std::to_string(rank);
}

std::string StoreBarrier::CountKey(uint64_t number) const {
  return prefix_ + "/" + std::to_string(number) + "/count";
}

std::string StoreBarrier::VerdictKey(uint64_t number) const {
  return prefix_ + "/" + std::to_string(number) + "/verdict";
}

}  // namespace rankrun::comm
