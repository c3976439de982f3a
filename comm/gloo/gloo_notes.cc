#include "comm/gloo/gloo_notes.h"

#include <charconv>
#include <chrono>
#include <span>

#include "comm/gloo/gloo_words.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStorePatience{1000};

// How long a lost connection waits for the word why.
constexpr milliseconds kWordPatience{20};

// How long after a difference was found the message waits for the words of the
// ranks that have not told theirs.
constexpr milliseconds kWordsPatience{200};

// One letter before the text of a note.
constexpr struct {
  char letter;
  ErrorCode code;
} kCodes[] = {{'m', ErrorCode::kMismatch},
              {'i', ErrorCode::kInvalid},
              {'c', ErrorCode::kCancelled},
              {'p', ErrorCode::kPeerLost}};

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

Notes::Notes(const BackendConfig& config)
    : shared_store_(config.store),
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

Error Notes::LostPeer(int peer, const std::string& why) {
  std::optional<Error> note = Find();
  if (!note) {
    deaths_.SleepUntil(std::chrono::steady_clock::now() + kWordPatience);
    note = Find();
  }
  if (note) return *std::move(note);
  std::string text = "lost " + NameRanks({global_ranks_[static_cast<size_t>(peer)]}) + ": " + why;
  if (deaths_.told()) text += "; " + deaths_.Word();
  return {ErrorCode::kPeerLost, text};
}

std::optional<Error> Notes::Compare(const Operation& operation) {
  std::lock_guard lock(mutex_);
  if (told_number_ != operation.number) {
    if (!Store().Set(InKey(group_rank_), Encode(operation))) return std::nullopt;
    told_number_ = operation.number;
    difference_seen_.reset();
  }
  if (auto note = FindNow()) return note;
  bool differ = false;
  bool complete = true;
  Calls calls(global_ranks_.size());
  for (size_t r = 0; r < calls.size(); ++r) {
    const auto word = Decode(ReadNow(InKey(static_cast<int>(r))));
    // Of another operation: left from before, or that rank is through with this one.
    if (!word || word->number != operation.number) {
      complete = false;
      continue;
    }
    calls[r] = word->description;
    differ = differ || word->fingerprint != Fingerprint(operation);
  }
  if (!differ) return std::nullopt;
  const TimePoint now = std::chrono::steady_clock::now();
  if (!difference_seen_) difference_seen_ = now;
  if (!complete && now < *difference_seen_ + kWordsPatience) return std::nullopt;
  const Error found{ErrorCode::kMismatch, DescribeCalls(calls, global_ranks_)};
  LeaveNow(found);
  auto first = FindNow();
  return first ? first : found;
}

store::Store& Notes::Store() {
  if (!own_store_) {
    auto clone = shared_store_.Clone(kStorePatience);
    if (!clone) return shared_store_;
    own_store_ = *std::move(clone);
  }
  return *own_store_;
}

std::string Notes::ReadNow(const std::string& key) {
  const auto exists = Store().Check(std::span(&key, 1));
  if (!exists || !*exists) return "";
  auto value = Store().Get(key, kStorePatience);
  return value ? *std::move(value) : "";
}

std::optional<Error> Notes::FindNow() {
  const std::string note = ReadNow(prefix_ + "/note");
  if (note.empty()) return std::nullopt;
  return Error{CodeOf(note[0]), note.substr(1)};
}

void Notes::LeaveNow(const Error& why) {
  // Should it fail, this rank still has its own error.
  (void)Store().CompareSet(prefix_ + "/note", "", LetterOf(why.code) + why.message);
}

std::string Notes::InKey(int group_rank) const {
  return prefix_ + "/in/" + std::to_string(group_rank);
}

}  // namespace rankrun::comm
