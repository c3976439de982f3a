#include "comm/gloo/failure_board.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>

#include "base/roll_call.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStorePatience{1000};

// Pause after a store did not answer within kStorePatience. Deaths go unnoticed
// during such a request, so requests to a silent store must be rare.
constexpr milliseconds kStorePause{5000};

// Time after a loss in which its reason may arrive: a farewell of another rank,
// or the agent's death message. On a busy machine the agent notices a death
// later than the kernel closes the connection.
constexpr milliseconds kFarewellPatience{20};
constexpr milliseconds kAgentPatience{100};

// Time after a mismatch was found in which the remaining ranks may publish
// their calls.
constexpr milliseconds kCallsPatience{200};

// First letter of a note or a farewell.
constexpr struct {
  char letter;
  ErrorCode code;
} kCodes[] = {
    {'m', ErrorCode::kMismatch}, {'c', ErrorCode::kCancelled}, {'p', ErrorCode::kPeerLost}};

char LetterOf(ErrorCode code) {
  for (const auto& known : kCodes) {
    if (known.code == code) return known.letter;
  }
  return 's';
}

ErrorCode CodeOf(char letter) {
  for (const auto& known : kCodes) {
    if (known.letter == letter) return known.code;
  }
  return ErrorCode::kSystem;
}

// First letter of the farewell of a rank that has not failed.
constexpr char kLeaves = 'l';

std::string Encode(const Error& why) { return LetterOf(why.code) + why.message; }

Error DecodeNote(std::string_view note) { return {CodeOf(note[0]), std::string(note.substr(1))}; }

// Value of the key in/<rank>: "<number> <fingerprint> <description>".
struct PublishedCall {
  uint64_t number = 0;
  uint64_t fingerprint = 0;
  std::string description;
};

std::string Encode(const Operation& operation) {
  return std::to_string(operation.number) + " " + std::to_string(Fingerprint(operation)) + " " +
         Describe(operation);
}

std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

std::optional<PublishedCall> Decode(std::string_view text) {
  auto number = TakeNumber(text);
  if (!number) return std::nullopt;
  auto fingerprint = TakeNumber(text);
  if (!fingerprint) return std::nullopt;
  return PublishedCall{*number, *fingerprint, std::string(text)};
}

}  // namespace

FailureBoard::FailureBoard(const BackendConfig& config, Control& control)
    : shared_store_(config.store),
      control_(control),
      prefix_(config.key_prefix),
      global_ranks_(config.global_ranks),
      group_rank_(config.group_rank),
      deaths_(config.deaths) {}

void FailureBoard::PublishNote(const Error& why) {
  MutexLock lock(mutex_);
  PublishNoteLocked(why);
}

std::optional<Error> FailureBoard::ReadNote() {
  MutexLock lock(mutex_);
  return ReadNoteLocked();
}

void FailureBoard::SendFarewell(const Error& why) {
  control_.SendFarewell(Encode(why), concluded_ + 1);
}

void FailureBoard::SendFarewellOnLeaving() {
  int rank = global_ranks_[static_cast<size_t>(group_rank_)];
  control_.SendFarewell(kLeaves + RanksInWords({rank}) + " has left the group", concluded_ + 1);
}

std::optional<Error> FailureBoard::Conclude(uint64_t call) {
  if (auto failure = FailureIn(call)) return failure;
  concluded_ = call;
  return std::nullopt;
}

std::optional<Error> FailureBoard::FailureIn(uint64_t call) {
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == group_rank_) continue;
    auto farewell = control_.Farewell(peer);
    if (!farewell || (*farewell)[0] == kLeaves) continue;
    if (control_.FirstCallThatFails(peer) <= call) return DecodeNote(*farewell);
  }
  return std::nullopt;
}

std::optional<Error> FailureBoard::WhyLost(int peer, const std::string& why, TimePoint since) {
  if (auto failure = FailureOf(peer)) return failure;
  if (deaths_.has_death()) return Error{ErrorCode::kCancelled, deaths_.Message()};
  auto leave = control_.Farewell(peer);
  // It may have left because of a death that another group has noticed.
  auto death = leave ? control_.FirstSilentLoss() : std::nullopt;
  bool waits_for_agent = deaths_.has_agent() && (!leave || death);
  milliseconds patience = waits_for_agent ? kAgentPatience : kFarewellPatience;
  if (std::chrono::steady_clock::now() < since + patience) return std::nullopt;
  if (death) return LostError(death->peer, death->why);
  if (leave) return Error{ErrorCode::kPeerLost, leave->substr(1)};
  if (auto note = ReadNote()) return note;
  return LostError(peer, why);
}

std::optional<Error> FailureBoard::FindFailure(TimePoint since) {
  if (auto failure = FailureIn(kAllCalls)) return failure;
  if (deaths_.has_death()) return deaths_.ErrorSince(since);
  auto lost = control_.FirstSilentLoss();
  if (!lost) return std::nullopt;
  return WhyLost(lost->peer, lost->why, since);
}

// Returns the failure that `peer` has reported in its farewell. Without one,
// returns that of another rank, because `peer` may have ended as a consequence.
std::optional<Error> FailureBoard::FailureOf(int peer) {
  auto farewell = control_.Farewell(peer);
  if (farewell && (*farewell)[0] != kLeaves) return DecodeNote(*farewell);
  return FailureIn(kAllCalls);
}

Error FailureBoard::LostError(int peer, const std::string& why) const {
  return {ErrorCode::kPeerLost,
          "lost " + RanksInWords({global_ranks_[static_cast<size_t>(peer)]}) + ": " + why};
}

std::optional<Error> FailureBoard::Compare(const Operation& operation) {
  MutexLock lock(mutex_);
  if (published_number_ != operation.number && !PublishCall(operation)) return std::nullopt;
  if (auto note = ReadNoteLocked()) return note;
  ReadCalls(operation);
  if (!difference_seen_ || deaths_.has_death()) return std::nullopt;
  bool complete = std::find(calls_.begin(), calls_.end(), "") == calls_.end();
  TimePoint now = std::chrono::steady_clock::now();
  if (!complete && now < *difference_seen_ + kCallsPatience) return std::nullopt;
  Error found{ErrorCode::kMismatch, DescribeCalls(calls_, global_ranks_)};
  PublishNoteLocked(found);
  auto first = ReadNoteLocked();
  return first ? first : found;
}

bool FailureBoard::PublishCall(const Operation& operation) {
  if (!HasStore()) return false;
  if (!own_store_->Set(InKey(group_rank_), Encode(operation))) {
    GiveUpStore();
    return false;
  }
  published_number_ = operation.number;
  difference_seen_.reset();
  calls_.assign(global_ranks_.size(), "");
  calls_[static_cast<size_t>(group_rank_)] = Describe(operation);
  return true;
}

// Reads only calls that are still unknown, because a rank makes one call per
// number.
void FailureBoard::ReadCalls(const Operation& operation) {
  for (size_t r = 0; r < calls_.size() && !deaths_.has_death(); ++r) {
    if (!calls_[r].empty()) continue;
    auto call = Decode(ReadKey(InKey(static_cast<int>(r))));
    // The call has another number: it is an old one, or that rank has finished
    // this operation.
    if (!call || call->number != operation.number) continue;
    calls_[r] = call->description;
    if (call->fingerprint == Fingerprint(operation) || difference_seen_) continue;
    difference_seen_ = std::chrono::steady_clock::now();
  }
}

bool FailureBoard::HasStore() {
  if (own_store_) return true;
  if (std::chrono::steady_clock::now() < next_connect_) return false;
  auto clone = shared_store_.CloneWith(kStorePatience, kStorePatience);
  if (clone) {
    own_store_ = *std::move(clone);
  } else {
    GiveUpStore();
  }
  return own_store_ != nullptr;
}

// Disconnects from a store that does not answer. Error texts have fewer details
// until the next attempt. A silent store delays errors by kStorePatience once
// in kStorePause.
void FailureBoard::GiveUpStore() {
  own_store_.reset();
  next_connect_ = std::chrono::steady_clock::now() + kStorePause;
}

std::string FailureBoard::ReadKey(const std::string& key) {
  if (!HasStore()) return "";
  auto exists = own_store_->Check(std::span(&key, 1));
  if (!exists) GiveUpStore();
  if (!exists || !*exists) return "";
  auto value = own_store_->Get(key, kStorePatience);
  if (!value) GiveUpStore();
  return value ? *std::move(value) : "";
}

std::optional<Error> FailureBoard::ReadNoteLocked() {
  std::string note = ReadKey(prefix_ + "/note");
  if (note.empty()) return std::nullopt;
  return DecodeNote(note);
}

void FailureBoard::PublishNoteLocked(const Error& why) {
  if (HasStore() && !own_store_->CompareSet(prefix_ + "/note", "", Encode(why))) GiveUpStore();
}

std::string FailureBoard::InKey(int group_rank) const {
  return prefix_ + "/in/" + std::to_string(group_rank);
}

}  // namespace rankrun::comm::gloo
