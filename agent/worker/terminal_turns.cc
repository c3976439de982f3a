#include "agent/worker/terminal_turns.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

std::string Rank(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

TerminalTurns::Turn TerminalTurns::Look(const Seen& seen, TimePoint now) {
  Turn turn;
  std::erase_if(asking_since_, [&](const auto& one) { return !seen.asking.contains(one.first); });
  std::erase_if(told_, [&](int rank) { return !seen.asking.contains(rank); });
  for (int rank : seen.asking) asking_since_.try_emplace(rank, now);
  Return(seen, now);
  if (!borrower_ && !owner_) Lend(now, turn);
  if (borrower_ && !owner_ && seen.asking.contains(*borrower_)) turn.reader = borrower_;
  NoteWaiting(seen, turn);
  return turn;
}

// Between two prompts a rank does not ask for a moment.
void TerminalTurns::Return(const Seen& seen, TimePoint now) {
  if (seen.owner) {
    owner_ = seen.owner;
    owner_read_ = now;
  } else if (now - owner_read_ >= kPause) {
    owner_.reset();
  }
  if (!borrower_) return;
  if (seen.asking.contains(*borrower_)) {
    borrower_asked_ = now;
  } else if (now - borrower_asked_ >= kPause) {
    borrower_.reset();
  }
}

// Not at once, because the owner may come to its own prompt.
void TerminalTurns::Lend(TimePoint now, Turn& turn) {
  const auto first = std::ranges::find_if(
      asking_since_, [&](const auto& one) { return now - one.second >= kPause; });
  if (first == asking_since_.end()) return;
  borrower_ = first->first;
  borrower_asked_ = now;
  told_.erase(*borrower_);
  turn.notices.push_back(Rank(*borrower_) + " waits for input: lending it the terminal");
}

void TerminalTurns::NoteWaiting(const Seen& seen, Turn& turn) {
  const std::optional<int> other = owner_ ? owner_ : borrower_;
  if (!other) return;
  for (int rank : seen.asking) {
    if (rank == other || !told_.insert(rank).second) continue;
    turn.notices.push_back(Rank(rank) + " waits for input, and for the terminal, which " +
                           Rank(*other) + " has");
  }
}

}  // namespace rankrun::agent
