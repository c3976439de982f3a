#include "agent/report/named_rank.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace rankrun::agent {
namespace {

// Follow the rank that is the reason.
constexpr std::string_view kEnds[] = {": killed by",
                                      ": exit code",
                                      ": could not be started",
                                      " was killed",
                                      " has ended",
                                      " has died",
                                      " has failed",
                                      " has left the group",
                                      " ended with",
                                      " could not be started",
                                      " died",
                                      " has not called",
                                      " has not joined",
                                      " refused ",
                                      " did not join",
                                      " failed to pass monitoredBarrier",
                                      " sends ",
                                      " did not answer",
                                      " did not respond",
                                      " does not respond",
                                      " is not responding",
                                      " is unresponsive",
                                      " missed its heartbeat"};

// Precede it.
constexpr std::string_view kLosses[] = {"lost ",
                                        "lost connection to ",
                                        "lost the connection to ",
                                        "missing: ",
                                        "no heartbeat from ",
                                        "no answer from ",
                                        "no response from ",
                                        "heard nothing from ",
                                        "timed out waiting for "};

// Ranks as "rank 2", "ranks 0, 1, 4-7", with the text behind them.
struct Ranks {
  int first = 0;
  size_t count = 0;
  std::string_view rest;
};

std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// Reads "0, 1, 4-7" at the begin of `text`.
std::optional<Ranks> ReadRanks(std::string_view text) {
  Ranks ranks;
  while (true) {
    std::string_view left = text;
    if (ranks.count > 0) {
      if (!left.starts_with(", ")) break;
      left.remove_prefix(2);
    }
    std::optional<int> number = TakeNumber(left);
    if (!number) break;
    if (ranks.count == 0) ranks.first = *number;
    ranks.count += 1;
    std::string_view behind = left.substr(std::min<size_t>(left.size(), 1));
    std::optional<int> last = left.starts_with('-') ? TakeNumber(behind) : std::nullopt;
    if (last && *last > *number) ranks.count += static_cast<size_t>(*last - *number);
    text = last ? behind : left;
  }
  if (ranks.count == 0) return std::nullopt;
  ranks.rest = text;
  return ranks;
}

// Removes " on node-2", " on node node-2" and " (pid 77)".
std::string_view WithoutPlace(std::string_view rest) {
  for (std::string_view part : {" on node ", " on "}) {
    if (rest.starts_with(part)) {
      rest.remove_prefix(std::min(rest.find(' ', part.size()), rest.size()));
    }
  }
  if (rest.starts_with(" (pid ")) rest.remove_prefix(std::min(rest.find(')') + 1, rest.size()));
  return rest;
}

// Calls `visit(text before, ranks)` for each "rank" or "ranks" with numbers, until it returns
// true.
template <typename Visit>
bool AnyRanks(std::string_view error, Visit visit) {
  constexpr std::string_view kWord = "ank";  // "rank", and "Rank" at the begin of a sentence
  for (size_t at = error.find(kWord, 1); at != error.npos; at = error.find(kWord, at + 1)) {
    if (std::tolower(static_cast<unsigned char>(error[at - 1])) != 'r') continue;
    std::string_view rest = error.substr(at + kWord.size());
    if (rest.starts_with('s')) rest.remove_prefix(1);
    if (!rest.starts_with(' ')) continue;
    std::optional<Ranks> ranks = ReadRanks(rest.substr(1));
    if (ranks && visit(error.substr(0, at - 1), *ranks)) return true;
  }
  return false;
}

std::optional<int> LostRankIn(std::string_view error) {
  std::optional<int> lost;
  AnyRanks(error, [&](std::string_view before, const Ranks& ranks) {
    std::string_view rest = WithoutPlace(ranks.rest);
    bool is_lost = std::ranges::any_of(kLosses, [&](auto part) { return before.ends_with(part); });
    bool has_ended = std::ranges::any_of(kEnds, [&](auto part) { return rest.starts_with(part); });
    // PyTorch compares the calls of two ranks: "Rank 0 is running ..., but Rank 1 is running ...".
    // PyTorch compares the models of two ranks, too: "..., while rank 1 has inconsistent 6 params".
    bool differs = (before.ends_with(", but ") && rest.starts_with(" is running collective")) ||
                   (before.ends_with(", while ") && rest.starts_with(" has inconsistent "));
    if (is_lost || has_ended || differs) lost = ranks.first;
    return lost.has_value();
  });
  return lost;
}

// "ranks 0, 1, 3 called AllReduce #4; rank 2 called Barrier #4": rank 2; likewise "want". With
// equal camps, or more than two, nobody is the reason.
std::optional<int> OddRankIn(std::string_view error) {
  std::optional<int> odd;
  size_t camps = 0;
  size_t most = 0;
  AnyRanks(error, [&](std::string_view, const Ranks& ranks) {
    const bool is_camp = ranks.rest.starts_with(" called ") || ranks.rest.starts_with(" want ") ||
                         ranks.rest.starts_with(" wants ");
    if (!is_camp) return false;
    camps += 1;
    most = std::max(most, ranks.count);
    if (ranks.count == 1) odd = ranks.first;
    return false;
  });
  return camps == 2 && most > 1 ? odd : std::nullopt;
}

// Reads the number between `before` and `after`.
std::optional<int> NumberBetween(std::string_view error, std::string_view before,
                                 std::string_view after) {
  size_t at = error.find(before);
  if (at == error.npos) return std::nullopt;
  error.remove_prefix(at + before.size());
  std::optional<int> number = TakeNumber(error);
  return number && error.starts_with(after) ? number : std::nullopt;
}

// Reads the rank in an error that all ranks raise because one of them has failed.
std::optional<int> SharedReasonIn(std::string_view error) {
  // torch.distributed.checkpoint. With several ranks, none is the reason.
  if (auto rank = NumberBetween(error, "CheckpointException ranks:dict_keys([", "])")) return rank;
  // MPI.
  if (auto rank = NumberBetween(error, "MPI_ABORT was invoked on rank ", " ")) return rank;
  // JAX. It lists several tasks if some have died of the first one's death.
  size_t tasks = error.find("tasks are unhealthy");
  if (tasks == error.npos) return std::nullopt;
  error.remove_prefix(tasks);
  const bool is_one = error.find("/task:") == error.rfind("/task:");
  return is_one ? NumberBetween(error, "/task:", "") : std::nullopt;
}

}  // namespace

std::optional<int> NamedRankIn(std::string_view error) {
  // Ranks that have ended because of the odd call may follow it.
  if (auto odd = OddRankIn(error)) return odd;
  if (auto lost = LostRankIn(error)) return lost;
  return SharedReasonIn(error);
}

}  // namespace rankrun::agent
