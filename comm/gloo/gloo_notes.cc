#include "comm/gloo/gloo_notes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>

#include "comm/gloo/gloo_words.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStorePatience{1000};

// One that did not answer in that time is left alone for so long, as nobody is
// told of a death meanwhile.
constexpr milliseconds kStorePause{5000};

// How long a lost connection waits for the word why: that of another rank, or
// of an agent, which may be told of a death later than the kernel closes the
// connection, if the machine is busy.
constexpr milliseconds kWordPatience{20};
constexpr milliseconds kAgentPatience{100};

// How long after a difference was found the message waits for the words of the
// ranks that have not told theirs.
constexpr milliseconds kWordsPatience{200};

// One letter before the text of a note or a farewell.
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

// Before the farewell of a rank with which all is well.
constexpr char kLeaves = 'l';

std::string Encode(const Error& why) { return LetterOf(why.code) + why.message; }

Error DecodeNote(std::string_view note) { return {CodeOf(note[0]), std::string(note.substr(1))}; }

// "<number> <fingerprint> <description>".
struct Word {
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
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

std::optional<Word> Decode(std::string_view text) {
  const auto number = TakeNumber(text);
  if (!number) return std::nullopt;
  const auto fingerprint = TakeNumber(text);
  if (!fingerprint) return std::nullopt;
  return Word{*number, *fingerprint, std::string(text)};
}

}  // namespace

std::string DescribeCalls(const Calls& calls, const std::vector<int>& global_ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // in the order of first ranks
  for (size_t r = 0; r < calls.size(); ++r) {
    size_t at = 0;
    while (at < groups.size() && groups[at].first != calls[r]) ++at;
    if (at == groups.size()) groups.emplace_back(calls[r], std::vector<int>());
    groups[at].second.push_back(global_ranks[r]);
  }
  std::string text;
  for (const auto& [call, ranks] : groups) {
    if (!text.empty()) text += "; ";
    text +=
        call.empty() ? "no word from " + NameRanks(ranks) : NameRanks(ranks) + " called " + call;
  }
  return text;
}

Notes::Notes(const BackendConfig& config, Control& control)
    : shared_store_(config.store),
      control_(control),
      prefix_(config.key_prefix),
      global_ranks_(config.global_ranks),
      group_rank_(config.group_rank),
      deaths_(config.deaths) {}

void Notes::Leave(const Error& why) {
  std::lock_guard lock(mutex_);
  LeaveNow(why);
}

std::optional<Error> Notes::Find() {
  std::lock_guard lock(mutex_);
  return FindNow();
}

void Notes::SayFarewell(const Error& why) { control_.SayFarewell(Encode(why)); }

void Notes::SayFarewellOnLeaving() {
  const int rank = global_ranks_[static_cast<size_t>(group_rank_)];
  control_.SayFarewell(kLeaves + NameRanks({rank}) + " has left the group");
}

std::optional<Error> Notes::WhyLost(int peer, const std::string& why, TimePoint since) {
  if (auto farewell = FarewellFor(peer)) return farewell;
  if (deaths_.told()) return Error{ErrorCode::kCancelled, deaths_.Word()};
  const milliseconds patience = deaths_.has_teller() ? kAgentPatience : kWordPatience;
  if (std::chrono::steady_clock::now() < since + patience) return std::nullopt;
  if (auto note = Find()) return note;
  return Error{ErrorCode::kPeerLost,
               "lost " + NameRanks({global_ranks_[static_cast<size_t>(peer)]}) + ": " + why};
}

// Its own; or that of another one that has failed, as this one may have died of
// it. That others have left is no reason to lose this one.
std::optional<Error> Notes::FarewellFor(int peer) {
  if (auto own = control_.Farewell(peer)) {
    if ((*own)[0] == kLeaves) return Error{ErrorCode::kPeerLost, own->substr(1)};
    return DecodeNote(*own);
  }
  for (int other = 0; other < control_.ranks(); ++other) {
    if (other == group_rank_) continue;
    const auto farewell = control_.Farewell(other);
    if (farewell && (*farewell)[0] != kLeaves) return DecodeNote(*farewell);
  }
  return std::nullopt;
}

std::optional<Error> Notes::Compare(const Operation& operation) {
  std::lock_guard lock(mutex_);
  if (told_number_ != operation.number && !Tell(operation)) return std::nullopt;
  if (auto note = FindNow()) return note;
  ReadWords(operation);
  if (!difference_seen_ || deaths_.told()) return std::nullopt;
  const bool complete = std::find(calls_.begin(), calls_.end(), "") == calls_.end();
  const TimePoint now = std::chrono::steady_clock::now();
  if (!complete && now < *difference_seen_ + kWordsPatience) return std::nullopt;
  const Error found{ErrorCode::kMismatch, DescribeCalls(calls_, global_ranks_)};
  LeaveNow(found);
  auto first = FindNow();
  return first ? first : found;
}

bool Notes::Tell(const Operation& operation) {
  if (!HasStore()) return false;
  if (!own_store_->Set(InKey(group_rank_), Encode(operation))) {
    GiveUpStore();
    return false;
  }
  told_number_ = operation.number;
  difference_seen_.reset();
  calls_.assign(global_ranks_.size(), "");
  calls_[static_cast<size_t>(group_rank_)] = Describe(operation);
  return true;
}

// Of those only that have not been read: no rank calls two things by one number.
void Notes::ReadWords(const Operation& operation) {
  for (size_t r = 0; r < calls_.size() && !deaths_.told(); ++r) {
    if (!calls_[r].empty()) continue;
    const auto word = Decode(ReadNow(InKey(static_cast<int>(r))));
    // Of another operation: left from before, or that rank is through with this one.
    if (!word || word->number != operation.number) continue;
    calls_[r] = word->description;
    if (word->fingerprint == Fingerprint(operation) || difference_seen_) continue;
    difference_seen_ = std::chrono::steady_clock::now();
  }
}

bool Notes::HasStore() {
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

// Errors are told shorter then. Later are those only for which a thread that may
// wait has asked a silent store: by its patience, once in kStorePause.
void Notes::GiveUpStore() {
  own_store_.reset();
  next_connect_ = std::chrono::steady_clock::now() + kStorePause;
}

std::string Notes::ReadNow(const std::string& key) {
  if (!HasStore()) return "";
  const auto exists = own_store_->Check(std::span(&key, 1));
  if (!exists) GiveUpStore();
  if (!exists || !*exists) return "";
  auto value = own_store_->Get(key, kStorePatience);
  if (!value) GiveUpStore();
  return value ? *std::move(value) : "";
}

std::optional<Error> Notes::FindNow() {
  const std::string note = ReadNow(prefix_ + "/note");
  if (note.empty()) return std::nullopt;
  return DecodeNote(note);
}

void Notes::LeaveNow(const Error& why) {
  if (HasStore() && !own_store_->CompareSet(prefix_ + "/note", "", Encode(why))) GiveUpStore();
}

std::string Notes::InKey(int group_rank) const {
  return prefix_ + "/in/" + std::to_string(group_rank);
}

}  // namespace rankrun::comm
