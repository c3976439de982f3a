#include <algorithm>
#include <utility>

#include "agent/health/hang_watch.h"
#include "base/format.h"
#include "base/roll_call.h"

// The part of HangWatch that puts hangs into words.

namespace rankrun::agent {
namespace {

constexpr size_t kMaxWaitsInWords = 4;       // of a dead-lock
constexpr size_t kMaxConditionsInWords = 3;  // of suspects

std::string Waiting(const Wait& wait) {
  std::string verb = wait.waiters.size() == 1 ? " waits " : " wait ";
  std::string preposition = wait.kind == WaitKind::kCollective ? "in " : "for ";
  return RanksInWords(wait.waiters) + verb + preposition + wait.what;
}

std::string Ranks(const std::set<int>& ranks) { return RanksInWords({ranks.begin(), ranks.end()}); }

}  // namespace

// Returns where the rank is in a group: ", and has left world", "; its last operation of world was
// AllReduce #811".
std::string HangWatch::PlaceOf(int rank, const std::string& group) const {
  const WorkerSample& sample = now_.at(rank);
  if (group.empty() || sample.has_ended) return "";
  auto found = std::ranges::find(sample.groups, group, &GroupActivity::name);
  if (found == sample.groups.end()) {
    auto seen = seen_.find(group);
    bool has_left = seen != seen_.end() && seen->second.contains(rank);
    return has_left ? " and has left " + group : " and has not joined " + group;
  }
  if (found->is_under_way) return " in " + DescribeOperation(found->last) + " of " + group;
  if (found->last.number == 0) return " before its first operation of " + group;
  return " after " + DescribeOperation(found->last) + " of " + group;
}

std::string HangWatch::SuspectsInWords(const std::set<int>& suspects,
                                       const std::string& group) const {
  std::map<std::string, std::set<int>> by_words;
  for (int rank : suspects) {
    std::string one = ConditionInWords(now_.at(rank), conditions_.at(rank)).substr(3);
    by_words[one + PlaceOf(rank, group)].insert(rank);
  }
  std::vector<std::pair<std::string, std::set<int>>> parts(by_words.begin(), by_words.end());
  std::ranges::sort(parts, {}, [](const auto& part) { return *part.second.begin(); });
  std::string text;
  for (size_t i = 0; i < std::min(parts.size(), kMaxConditionsInWords); ++i) {
    const auto& [words, ranks] = parts[i];
    if (i > 0) text += ", ";
    text += Ranks(ranks) + (ranks.size() == 1 ? " is " : " are ") + words;
  }
  if (parts.size() > kMaxConditionsInWords) text += ", and others";
  return text;
}

std::string HangWatch::DeadlockWords(const Hang& hang) const {
  std::string text = "dead-lock: ";
  size_t count = 0;
  for (const Wait& wait : waits_) {
    auto is_in = [&](int rank) { return hang.suspects.contains(rank); };
    std::set<int> partners;
    std::ranges::copy_if(wait.ranks, std::inserter(partners, partners.end()), is_in);
    if (std::ranges::none_of(wait.waiters, is_in) || partners.empty()) continue;
    if (++count > kMaxWaitsInWords) continue;
    text += (count > 1 ? "; " : "") + Waiting(wait);
    if (wait.kind != WaitKind::kMessage) text += " for " + Ranks(partners);
  }
  if (count > kMaxWaitsInWords) {
    text += "; and " + std::to_string(count - kMaxWaitsInWords) + " more waits";
  }
  return text + "; for " + FormatSeconds(hang.wait.lasted);
}

std::string HangWatch::Words(const Hang& hang) const {
  if (hang.is_deadlock) return DeadlockWords(hang);
  const Wait& wait = hang.wait;
  const std::string lasted = "; for " + FormatSeconds(wait.lasted);
  if (hang.suspects.empty()) {
    return Waiting(wait) + ": all of its ranks have entered it, and nothing moves" + lasted;
  }
  const std::string suspects = SuspectsInWords(hang.suspects, wait.group);
  if (wait.kind == WaitKind::kMessage) return Waiting(wait) + "; " + suspects + lasted;
  const std::string ranks = Ranks(hang.suspects);
  if (wait.kind == WaitKind::kStoreKey) {
    std::string verb = hang.suspects.size() == 1 ? " has" : " have";
    return Waiting(wait) + ", which " + ranks + verb + " not set; " + suspects + lasted;
  }
  // All in one condition: "for rank 3, which is stopped".
  const bool is_one = suspects.starts_with(ranks + " is ") || suspects.starts_with(ranks + " are ");
  std::string text = Waiting(wait) + " for " + ranks;
  return text + (is_one ? ", which" + suspects.substr(ranks.size()) : ": " + suspects) + lasted;
}

std::string HangWatch::AwaitedEndWords(const Hang& hang, const std::set<int>& ended) const {
  const Wait& wait = hang.wait;
  if (wait.kind == WaitKind::kCollective) {
    return EndedWhileAwaited(wait.waiters, ended, wait.what);
  }
  return "ended with exit code 0 while " + Waiting(wait);
}

std::string HangWatch::CauseInWords(const Hang& hang, int rank) const {
  if (hang.is_deadlock) return DeadlockWords(hang);
  return ConditionInWords(now_.at(rank), conditions_.at(rank)).substr(3) +
         PlaceOf(rank, hang.wait.group) + "; " + Waiting(hang.wait) + " for " +
         FormatSeconds(hang.wait.lasted);
}

std::string HangWatch::SignatureOf(const Hang& hang) const {
  std::string signature = RanksInWords(hang.wait.waiters);
  for (int rank : hang.suspects) {
    signature +=
        "," + std::to_string(rank) + ":" + std::to_string(static_cast<int>(conditions_.at(rank)));
  }
  return signature;
}

}  // namespace rankrun::agent
