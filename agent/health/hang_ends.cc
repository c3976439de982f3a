#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/health/hang_watch.h"
#include "base/roll_call.h"

// The part of HangWatch about workers that have ended while others run.

namespace rankrun::agent {

// A worker that makes steps does not wait. Waits that are seen have notices of their own.
std::optional<std::string> HangWatch::NoticeOfEarlyEnd(const std::vector<Hang>& hangs) {
  auto end = FindEarlyEnd(now_);
  if (!end || !early_ends_.Take(end->first)) return std::nullopt;
  if (std::ranges::any_of(hangs, NamesCause)) return std::nullopt;
  std::erase_if(end->running, [&](int rank) {
    const Condition condition = conditions_.at(rank);
    return condition == Condition::kMoves || condition == Condition::kSaving;
  });
  if (end->running.empty()) return std::nullopt;
  return NothingShows(*end) + "; " + SuspectsInWords(end->running, "");
}

// Any rank may have to set a key: one that has ended is awaited if no other is left.
std::optional<HangVerdict> HangWatch::VerdictOnAwaited(const EarlyEnd& end) const {
  std::optional<HangVerdict> running;
  for (const Hang& hang : FindHangs()) {
    std::set<int> ended;
    std::ranges::set_intersection(hang.suspects, end.ended, std::inserter(ended, ended.end()));
    const bool is_key = hang.wait.kind == WaitKind::kStoreKey;
    if (!ended.empty() && (!is_key || ended == hang.suspects)) {
      const std::string why = AwaitedEndWords(hang, ended);
      HangVerdict verdict{.text = RanksInWords({ended.begin(), ended.end()}) + " " + why};
      for (int rank : ended) verdict.causes[rank] = why;
      return verdict;
    }
    if (running || is_key || hang.suspects.empty()) continue;
    running = HangVerdict{.text = Words(hang)};
    for (int rank : hang.suspects) running->causes[rank] = CauseInWords(hang, rank);
  }
  return running;
}

std::optional<std::string> HangWatch::AwaitedEnd() const {
  const auto end = FindEarlyEnd(now_);
  if (!end) return std::nullopt;
  const auto verdict = VerdictOnAwaited(*end);
  if (!verdict || !end->ended.contains(verdict->causes.begin()->first)) return std::nullopt;
  return verdict->text;
}

HangVerdict HangWatch::JudgeUnfinished(TimePoint since) const {
  const auto end = FindEarlyEnd(now_);
  if (!end) return {};
  if (auto awaited = VerdictOnAwaited(*end)) return *std::move(awaited);
  HangVerdict verdict{.text = NothingShows(*end), .needs_stacks = last_progress_ <= since};
  for (int rank : end->running) verdict.causes[rank] = verdict.text;
  return verdict;
}

}  // namespace rankrun::agent
