#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace rankrun::agent {

// Decides which of the workers that wait for input gets the terminal's input. One has the
// terminal itself and cannot be kept from reading it, so it comes first. The others take turns,
// the lowest rank first: a worker keeps the terminal until it has not asked for a while. Pure.
class TerminalTurns {
 public:
  static constexpr std::chrono::milliseconds kPause{500};

  // Global ranks that wait for input at one look.
  struct Seen {
    std::set<int> asking = {};   // without a terminal of their own
    std::optional<int> owner{};  // has the terminal itself, and reads it
  };
  struct Turn {
    std::optional<int> reader{};         // gets the next input
    std::vector<std::string> notices{};  // "rank 1 waits for input: lending it the terminal"
  };
  Turn Look(const Seen& seen, TimePoint now);

 private:
  void Return(const Seen& seen, TimePoint now);
  void Lend(TimePoint now, Turn& turn);
  void NoteWaiting(const Seen& seen, Turn& turn);

  std::map<int, TimePoint> asking_since_;
  std::optional<int> borrower_;
  TimePoint borrower_asked_{};  // the last time
  std::optional<int> owner_;    // has read lately
  TimePoint owner_read_{};
  std::set<int> told_;  // that they wait for their turn
};

}  // namespace rankrun::agent
