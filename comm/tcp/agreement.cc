#include "comm/tcp/agreement.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "base/parse_number.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"

namespace rankrun::comm::tcp {
namespace {

// Longest wait in the store. Its clients cancel a wait at a death; this rank
// checks for losses and the deadline between waits.
constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::milliseconds kCancellableSlice{20};
const std::string kAll = "all";
const std::string kFailed = "failed";
const std::string kGood = "good";

TimePoint Now() { return std::chrono::steady_clock::now(); }

Error AsStoreError(Error error) {
  if (error.code != ErrorCode::kCancelled && error.code != ErrorCode::kTimeout) {
    error.code = ErrorCode::kProtocol;
  }
  return error;
}

std::string VerdictOf(const Error& complaint) {
  return std::to_string(static_cast<int>(complaint.code)) + " " + complaint.message;
}

// Returns kPeerLost with all of the text if it has no code.
Error ComplaintIn(const std::string& verdict) {
  size_t space = std::min(verdict.find(' '), verdict.size());
  auto code = ParseNumber<int>(std::string_view(verdict).substr(0, space));
  if (!code || *code < 0 || *code > static_cast<int>(ErrorCode::kSystem)) {
    return {ErrorCode::kPeerLost, verdict};
  }
  return {static_cast<ErrorCode>(*code), verdict.substr(std::min(space + 1, verdict.size()))};
}

}  // namespace

std::string Agreement::NameOf(int rank) const {
  return RanksInWords({config_.global_ranks[static_cast<size_t>(rank)]});
}

std::string Agreement::AfterTimeout() const {
  return " after " + std::to_string(config_.timeout.count()) + " ms";
}

Result<std::vector<PeerAddress>> Agreement::Exchange(const PeerAddress& own) {
  if (auto ok = Publish(own); !ok) return std::move(ok).error();
  if (auto ok = AwaitReady(); !ok) return std::move(ok).error();
  std::vector<std::string> keys;
  for (int rank = 0; rank < config_.world_size(); ++rank) {
    keys.push_back(Key("address/" + std::to_string(rank)));
  }
  auto texts = AwaitValues(keys);
  if (!texts) return std::move(texts).error();
  std::vector<PeerAddress> addresses;
  for (size_t rank = 0; rank < texts->size(); ++rank) {
    auto address = DecodePeerAddress((*texts)[rank]);
    if (!address) return Fail(std::move(address).error().In(NameOf(static_cast<int>(rank))));
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

// The keys were there, but a rank that has given up may have deleted them.
Result<std::vector<std::string>> Agreement::AwaitValues(const std::vector<std::string>& keys) {
  for (;;) {
    auto values = config_.store.MultiGet(keys, Slice());
    if (values) return values;
    if (values.error().code != ErrorCode::kTimeout || Now() >= deadline_) {
      return AsStoreError(values.error());
    }
    if (auto end = EndOf(config_)) return *std::move(end);
  }
}

Result<void> Agreement::Publish(const PeerAddress& own) {
  auto set = config_.store.Set(Key("address/" + std::to_string(config_.group_rank)), Encode(own));
  if (!set) return AsStoreError(set.error());
  auto published = config_.store.Add(Key("addresses"), 1);
  if (!published) return AsStoreError(published.error());
  if (*published != config_.world_size()) return {};
  if (auto ok = config_.store.Set(Key("ready"), kAll); !ok) return AsStoreError(ok.error());
  return {};
}

std::chrono::milliseconds Agreement::Slice() const {
  return std::min(TimeLeft(deadline_),
                  config_.is_cancelled != nullptr ? kCancellableSlice : kSlice);
}

Result<void> Agreement::AwaitReady() {
  for (;;) {
    auto ready = config_.store.Get(Key("ready"), Slice());
    if (ready && *ready == kAll) return {};
    if (ready) return Fail({ErrorCode::kPeerLost, "another rank has given up"});
    if (ready.error().code != ErrorCode::kTimeout) return AsStoreError(ready.error());
    if (auto end = EndOf(config_)) return *std::move(end);
    if (Now() >= deadline_) {
      return Fail({ErrorCode::kTimeout,
                   "no address from " + RanksInWords(RanksWithoutKey("address")) + AfterTimeout()});
    }
  }
}

// Returns the global ranks that have set no key in `folder`.
std::vector<int> Agreement::RanksWithoutKey(const std::string& folder) {
  std::vector<int> without;
  for (int rank = 0; rank < config_.world_size(); ++rank) {
    std::string key = Key(folder + "/" + std::to_string(rank));
    auto there = config_.store.Check(std::span(&key, 1));
    if (there && !*there) without.push_back(config_.global_ranks[static_cast<size_t>(rank)]);
  }
  return without;
}

Error Agreement::Fail(Error complaint) {
  auto settled = Settle(complaint);
  return settled ? std::move(complaint) : std::move(settled).error();
}

// Publishes a complaint, unless there is a verdict. Returns the verdict: the
// first complaint or success.
Result<void> Agreement::Settle(const Error& complaint) {
  auto set = config_.store.CompareSet(Key("verdict"), "", VerdictOf(complaint));
  if (!set) return AsStoreError(set.error());
  if (set->value == kGood) return {};
  // For ranks that wait for addresses; after the verdict, which they then read.
  static_cast<void>(config_.store.Set(Key("ready"), kFailed));
  return ComplaintIn(set->value);
}

std::optional<Error> Agreement::ComplaintOfOthers() {
  std::string key = Key("verdict");
  auto there = config_.store.Check(std::span(&key, 1));
  if (!there) return AsStoreError(there.error());
  if (!*there) return std::nullopt;
  auto verdict = config_.store.Get(key, std::chrono::milliseconds(0));
  if (verdict) return ComplaintIn(*verdict);
  if (verdict.error().code == ErrorCode::kTimeout) return std::nullopt;  // deleted meanwhile
  return AsStoreError(verdict.error());
}

Result<void> Agreement::Confirm(const std::function<std::optional<Error>()>& find_loss) {
  auto good = config_.store.Add(Key("good"), 1);
  if (!good) return AsStoreError(good.error());
  if (*good == config_.world_size()) {
    auto set = config_.store.CompareSet(Key("verdict"), "", kGood);
    if (!set) return AsStoreError(set.error());
  }
  auto ok = config_.store.Set(Key("good/" + std::to_string(config_.group_rank)), "");
  if (!ok) return AsStoreError(ok.error());
  return AwaitVerdict(find_loss);
}

Result<void> Agreement::AwaitVerdict(const std::function<std::optional<Error>()>& find_loss) {
  for (;;) {
    auto verdict = config_.store.Get(Key("verdict"), Slice());
    if (verdict && *verdict == kGood) return {};
    if (verdict) return ComplaintIn(*verdict);
    if (verdict.error().code != ErrorCode::kTimeout) return AsStoreError(verdict.error());
    if (auto end = EndOf(config_)) return *std::move(end);
    if (auto loss = find_loss()) return Settle(*loss);
    if (Now() >= deadline_) {
      return Settle({ErrorCode::kTimeout, "no confirmation of all connections from " +
                                              RanksInWords(RanksWithoutKey("good")) +
                                              AfterTimeout()});
    }
  }
}

void Agreement::Forget() {
  std::vector<std::string> names{"addresses", "ready", "good", "verdict"};
  for (int rank = 0; rank < config_.world_size(); ++rank) {
    names.push_back("address/" + std::to_string(rank));
    names.push_back("good/" + std::to_string(rank));
  }
  for (const std::string& name : names) static_cast<void>(config_.store.Delete(Key(name)));
}

std::optional<Error> EndOf(const BackendConfig& config) {
  if (config.deaths.has_death()) return Error{ErrorCode::kCancelled, config.deaths.Message()};
  if (config.is_cancelled == nullptr || !config.is_cancelled->load()) return std::nullopt;
  return Error{ErrorCode::kCancelled, "the connection is wanted no more"};
}

}  // namespace rankrun::comm::tcp
