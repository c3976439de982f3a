#include "agent/report/verdict.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/report/behind_rank.h"
#include "agent/report/last_error.h"
#include "agent/report/logged_error.h"
#include "agent/report/lost_peer.h"
#include "agent/report/named_rank.h"
#include "agent/report/verdict_rule.h"
#include "agent/report/watchdog_call.h"
#include "base/fnv.h"

namespace rankrun::agent {
namespace {

constexpr int kShellsBase = 128;  // a program that exits with 128+n reports signal n

LastError ErrorOf(const WorkerRecord& worker) {
  const std::string& output = OutputOfErrors(worker);
  LastError error = FindLastError(output);
  if (EndedWithException(error)) return error;
  if (worker.exception) return {.text = *worker.exception + '\n', .is_exception = true};
  if (error.is_exception) error = LastLinesError(output);
  // The last lines of standard output may be results: "rank 1 ended with loss 0.31".
  const bool may_be_result = worker.stderr_tail.empty() && !error.is_exception;
  if (may_be_result && !EndsWithLostPeer(error) && !TimedOut(error) && !InputEnded(error))
    return {};
  return error;
}

// Returns a hash of the letters, because numbers such as ranks, ports and steps differ; 0 if there
// are none.
uint64_t FingerprintOf(std::string_view text) {
  constexpr size_t kMaxLetters = 200;
  Fnv hash;
  size_t letters = 0;
  for (char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (!std::isalpha(letter)) continue;
    hash.Add(letter);
    if (++letters == kMaxLetters) break;
  }
  return letters > 0 ? hash.hash() : 0;
}

// Texts about a signal are no errors of the program.
uint64_t FingerprintOf(const LastError& error) {
  constexpr std::string_view kOfSignals[] = {"signal", "SIGTERM", "Interrupt", "SystemExit",
                                             "Terminated"};
  const auto is_in_text = [&](auto part) { return error.text.find(part) != error.text.npos; };
  if (!error.is_exception || std::ranges::any_of(kOfSignals, is_in_text)) return 0;
  return FingerprintOf(error.text);
}

bool WasSignalled(const WorkerRecord& worker) { return worker.sent_signal != 0; }

// The worker ended as a program does that got our signal and has no error to report.
bool EndedBySignal(const WorkerRecord& worker) {
  int value = worker.exit->value;
  if (worker.exit->signaled) return value == worker.sent_signal;
  return value == kShellsBase + worker.sent_signal;
}

// SIGABRT is how C++ ends a program with an exception.
bool IsKilledFromOutside(const WorkerRecord& worker) {
  int value = worker.exit->value;
  return worker.exit->signaled && value != worker.sent_signal && value != SIGABRT;
}

EndKind KindOf(const WorkerRecord& worker, const LastError& error) {
  if (!worker.hang.empty()) return EndKind::kHung;
  if (!worker.failed()) return EndKind::kSucceeded;
  if (!worker.exit) return EndKind::kNotStarted;
  bool is_sigpipe = worker.exit->signaled && worker.exit->value == SIGPIPE;
  std::optional<int> named = NamedRankIn(error.text);
  // Its own call was the odd one, and its error says so.
  bool names_itself = named == worker.global_rank;
  bool blames_peer = !names_itself && BlamesLostPeer(error);
  // Not a line of some log.
  bool is_sure = error.is_exception || named || EndsWithLostPeer(error);
  if (is_sigpipe || (is_sure && blames_peer)) return EndKind::kLostPeer;
  if (!IsKilledFromOutside(worker)) {
    if (TimedOut(error)) return EndKind::kTimedOut;
    if (InputEnded(error)) return EndKind::kInputEnded;
  }
  if (!WasSignalled(worker)) {
    // A line of the log is weak evidence. A signal is the end of its own failure.
    bool is_warning = blames_peer && !worker.exit->signaled;
    return is_warning ? EndKind::kFailedAfterWarning : EndKind::kFailed;
  }
  if (EndedBySignal(worker)) {
    return error.is_exception ? EndKind::kKilledInException : EndKind::kStopped;
  }
  if (error.is_exception || worker.exit->signaled) return EndKind::kRaisedAfterSignal;
  return blames_peer ? EndKind::kLostPeer : EndKind::kExitedAfterSignal;
}

// The workers of an attempt, and the losses that their errors name.
class Ends {
 public:
  Ends(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended) : ended_(ended) {
    std::map<int, int> lost_ranks;  // how often errors name each
    for (const WorkerRecord& worker : workers) {
      Ending ending = EndingOf(worker);
      if (ending.kind == EndKind::kSucceeded && !WasSignalled(worker)) {
        left_early_.push_back(kinds_.size());
      }
      kinds_.push_back(ending.kind);
      errors_.push_back(ending.kind == EndKind::kSucceeded ? 0 : ending.error);
      logged_.push_back(ending.kind == EndKind::kSucceeded ? 0 : ending.logged);
      names_somebody_.push_back(ending.lost_rank >= 0);
      if (ending.lost_rank >= 0) ++lost_ranks[ending.lost_rank];
    }
    for (size_t i = 0; i < workers.size(); ++i) {
      auto found = lost_ranks.find(workers[i].global_rank);
      if (found != lost_ranks.end()) named_[i] = found->second;
    }
  }

  size_t ChooseCause() const {
    using enum VerdictRule;
    const std::optional<size_t> none;
    if (auto found = By(kHung, TheLowestThatHung())) return *found;
    if (auto found = By(kTheOnlyOneWithAnotherError, TheOnlyOneWithAnotherError(false))) {
      return *found;
    }
    if (auto found = By(kTheOnlyOneThatLogged, AllHaveOneError() ? TheOnlyOneThatLogged() : none)) {
      return *found;
    }
    if (auto found = By(kFailed, FirstOf({EndKind::kNotStarted, EndKind::kFailed}))) return *found;
    if (auto found = By(kNamed, TheMostNamed([&](size_t i) { return IsNamed(i); }))) return *found;
    if (!SeveralExitedInTheirHandlers()) {
      if (auto found = By(kExitedAfterSignal, FirstOf({EndKind::kExitedAfterSignal}))) {
        return *found;
      }
    }
    if (auto found = By(kFailedAfterWarning, FirstOf({EndKind::kFailedAfterWarning}))) {
      return *found;
    }
    if (auto found = By(kTheOnlyOneThatLostNobody, TheOnlyOneThatLostNobody())) return *found;
    if (auto found = By(kKilledInException, FirstOf({EndKind::kKilledInException}))) return *found;
    if (auto found = By(kInputEnded, FirstOf({EndKind::kInputEnded}))) return *found;
    if (auto found = By(kTimedOut, FirstOf({EndKind::kTimedOut}))) return *found;
    if (auto found = By(kTheOnlyOneThatLeftEarly, TheOnlyOneThatLeftEarly())) return *found;
    if (!AllRaisedInTheirHandlers()) {
      if (auto found = By(kRaisedAfterSignal, FirstOf({EndKind::kRaisedAfterSignal}))) {
        return *found;
      }
    }
    if (auto found = By(kTheOnlyOneThatLogged, TheOnlyOneThatLogged())) return *found;
    if (auto found = By(kTheOnlyOneWithAnotherError, TheOnlyOneWithAnotherError(true))) {
      return *found;
    }
    if (auto found = By(kLostPeer, FirstOf({EndKind::kLostPeer}))) return *found;
    auto failed = First([&](size_t i) { return kinds_[i] != EndKind::kSucceeded; });
    return failed.value_or(ended_.front());
  }

 private:
  // Returns the worker that a rule has found.
  static std::optional<size_t> By(VerdictRule rule, std::optional<size_t> found) {
    return IsMissing(rule) ? std::nullopt : found;
  }

  // Our signal ended it, so the order of the ends means nothing.
  std::optional<size_t> TheLowestThatHung() const {
    if (IsMissing(VerdictRule::kLowestRank)) {
      return First([&](size_t i) { return kinds_[i] == EndKind::kHung; });
    }
    auto hung = std::ranges::find(kinds_, EndKind::kHung);
    if (hung == kinds_.end()) return std::nullopt;
    return static_cast<size_t>(hung - kinds_.begin());
  }

  template <typename Condition>
  std::optional<size_t> First(Condition condition) const {
    auto found = std::ranges::find_if(ended_, condition);
    return found == ended_.end() ? std::nullopt : std::optional(*found);
  }

  // Returns the worker among several that most others name, or else the one that ended first.
  template <typename Condition>
  std::optional<size_t> TheMostNamed(Condition condition) const {
    std::optional<size_t> best;
    for (size_t i : ended_) {
      if (!condition(i)) continue;
      const int more = best ? Votes(i) - Votes(*best) : 1;
      if (more > 0 || (more == 0 && IsMissing(VerdictRule::kFirstEnded))) best = i;
    }
    return best;
  }

  std::optional<size_t> FirstOf(const std::set<EndKind>& kinds) const {
    return TheMostNamed([&](size_t i) { return kinds.contains(kinds_[i]); });
  }

  int Votes(size_t i) const {
    if (IsMissing(VerdictRule::kNamedByMost)) return 0;
    auto found = named_.find(i);
    return found == named_.end() ? 0 : found->second;
  }

  // Its peers lost it, and it lost nobody itself.
  bool IsNamed(size_t i) const {
    const bool lost_somebody =
        kinds_[i] == EndKind::kLostPeer && !IsMissing(VerdictRule::kNamedOnesLostNobody);
    return named_.contains(i) && !lost_somebody && kinds_[i] != EndKind::kSucceeded;
  }

  // All others with an exception have the same one, and at least two do: they lost it in words
  // that nobody knows. It has an exception of another text, which names nobody. Any other failure
  // without an exception may be the cause, too.
  std::optional<size_t> TheOnlyOneWithAnotherError(bool among_victims) const {
    std::map<uint64_t, std::vector<size_t>> by_error;
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (errors_[i] != 0) by_error[errors_[i]].push_back(i);
      const bool may_be_cause = kinds_[i] < EndKind::kLostPeer && errors_[i] == 0;
      if (may_be_cause && !IsMissing(VerdictRule::kSilentFailureIsStronger)) return std::nullopt;
    }
    if (by_error.size() != 2) return std::nullopt;
    const auto& first = by_error.begin()->second;
    const auto& second = by_error.rbegin()->second;
    const auto& few = first.size() < second.size() ? first : second;
    const auto& many = first.size() < second.size() ? second : first;
    if (few.size() != 1 || many.size() < 2 || names_somebody_[few.front()]) return std::nullopt;
    const size_t odd = few.front();
    // A text of victims that is known has rows of its own. Handlers of our signal may raise, too.
    const bool has_begun = std::ranges::any_of(many, [&](size_t i) {
      return kinds_[i] == (among_victims ? EndKind::kLostPeer : EndKind::kFailed);
    });
    return has_begun && IsVictim(odd) == among_victims ? std::optional(odd) : std::nullopt;
  }

  // Each failure but that of a victim is the same exception, and there are two at least.
  bool AllHaveOneError() const {
    std::set<uint64_t> errors;
    size_t count = 0;
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] >= EndKind::kLostPeer) continue;
      errors.insert(errors_[i]);
      ++count;
    }
    return count >= 2 && errors.size() == 1 && !errors.contains(0);
  }

  // It has logged an error that no other has, before it ended as the others did: they failed
  // because of the work that it left out.
  std::optional<size_t> TheOnlyOneThatLogged() const {
    std::optional<size_t> only;
    for (size_t i = 0; i < logged_.size(); ++i) {
      if (logged_[i] == 0 || std::ranges::count(logged_, logged_[i]) > 1) continue;
      if (only) return std::nullopt;
      only = i;
    }
    const bool has_error = only && (errors_[*only] != 0 || IsVictim(*only));
    return has_error ? only : std::nullopt;
  }

  size_t Count(EndKind kind) const { return static_cast<size_t>(std::ranges::count(kinds_, kind)); }

  // It lost a peer, or waited in vain.
  bool IsVictim(size_t i) const {
    return kinds_[i] == EndKind::kLostPeer || kinds_[i] == EndKind::kTimedOut ||
           kinds_[i] == EndKind::kInputEnded;
  }

  // Two others must have lost it: a single one may have lost something else. A silent
  // worker is not blamed by those whose input ended: that may have been a file of their own.
  std::optional<size_t> TheOnlyOneThatLostNobody() const {
    size_t victims = Count(EndKind::kLostPeer) + Count(EndKind::kTimedOut);
    const bool spares_silent =
        Count(EndKind::kStopped) > 0 && !IsMissing(VerdictRule::kSilentOneMayBeInnocent);
    if (!spares_silent) victims += Count(EndKind::kInputEnded);
    const size_t enough = IsMissing(VerdictRule::kTwoLostTheOnlyOne) ? 1 : 2;
    if (victims < enough || victims + 1 != kinds_.size()) return std::nullopt;
    return First([&](size_t i) { return !IsVictim(i) && kinds_[i] != EndKind::kSucceeded; });
  }

  // It succeeded before any signal of ours, but others still needed it. If several did, the
  // others may only have lost them at their own end.
  std::optional<size_t> TheOnlyOneThatLeftEarly() const {
    const bool several = left_early_.size() > 1 && !IsMissing(VerdictRule::kSeveralLeftEarly);
    if (left_early_.empty() || several || Count(EndKind::kLostPeer) == 0) return std::nullopt;
    return left_early_.front();
  }

  // While the input of another one ended early.
  bool SeveralExitedInTheirHandlers() const {
    if (IsMissing(VerdictRule::kSeveralExitInTheirHandlers)) return false;
    return Count(EndKind::kExitedAfterSignal) >= 2 && Count(EndKind::kInputEnded) > 0;
  }

  bool AllRaisedInTheirHandlers() const {
    if (IsMissing(VerdictRule::kAllRaiseInTheirHandlers)) return false;
    return Count(EndKind::kRaisedAfterSignal) >= 2 && Count(EndKind::kStopped) == 0 &&
           Count(EndKind::kLostPeer) > 0;
  }

  const std::vector<size_t>& ended_;
  std::vector<EndKind> kinds_;
  std::vector<uint64_t> errors_;      // fingerprints; 0: none
  std::vector<uint64_t> logged_;      // likewise
  std::vector<bool> names_somebody_;  // that it lost
  std::vector<size_t> left_early_;    // workers that succeeded
  std::map<size_t, int> named_;       // workers that errors of victims name, and how many do
};

}  // namespace

Ending EndingOf(const WorkerRecord& worker) {
  if (worker.ending) return *worker.ending;
  LastError error = ErrorOf(worker);
  Ending ending{.kind = KindOf(worker, error),
                .error = FingerprintOf(error),
                .logged = FingerprintOf(LoggedError(OutputOfErrors(worker)))};
  if (ending.kind == EndKind::kLostPeer) ending.lost_rank = NamedRankIn(error.text).value_or(-1);
  return ending;
}

EndKind EndKindOf(const WorkerRecord& worker) {
  if (worker.ending) return worker.ending->kind;
  if (!worker.failed() && worker.hang.empty()) return EndKind::kSucceeded;
  return KindOf(worker, ErrorOf(worker));
}

std::string CauseInWords(const WorkerRecord& cause) {
  const bool left_early = !cause.failed() && !WasSignalled(cause);
  return HowItEnded(cause) + (left_early ? ", while others still needed it" : "");
}

const std::string& OutputOfErrors(const WorkerRecord& worker) {
  return worker.stderr_tail.empty() ? worker.stdout_tail : worker.stderr_tail;
}

size_t ChooseCause(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended) {
  return Ends(workers, ended).ChooseCause();
}

void Judge(AttemptRecord& record, bool has_all_workers) {
  for (WorkerRecord& worker : record.workers) {
    worker.ending = EndingOf(worker);
    // A dump of PyTorch has more.
    auto call = CallInWatchdogText(worker.stderr_tail);
    if (worker.calls.empty() && call) worker.calls = {std::move(*call)};
  }
  if (has_all_workers) NoteRankBehind(record);
  bool has_hung = record.exit_code == kExitHang;
  if (!has_hung) record.cause = ChooseCause(record.workers, record.ended);
}

}  // namespace rankrun::agent
