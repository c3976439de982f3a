#include "agent/worker/terminal_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

struct TerminalTurnsTest : ::testing::Test {
  // Looks again after 100 ms.
  TerminalTurns::Turn Look(const std::set<int>& asking, std::optional<int> owner = {}) {
    now += milliseconds(100);
    return turns.Look({.asking = asking, .owner = owner}, now);
  }
  // Looks for a second, and returns the last turn with all notices.
  TerminalTurns::Turn LookOn(const std::set<int>& asking, std::optional<int> owner = {}) {
    TerminalTurns::Turn last;
    for (int i = 0; i < 10; ++i) {
      TerminalTurns::Turn turn = Look(asking, owner);
      turn.notices.insert(turn.notices.begin(), last.notices.begin(), last.notices.end());
      last = turn;
    }
    return last;
  }

  TimePoint now{std::chrono::seconds(1'000)};
  TerminalTurns turns;
};

TEST_F(TerminalTurnsTest, ARankThatWaitsForInputGetsTheTerminal) {
  EXPECT_EQ(Look({1}).reader, std::nullopt) << "the owner may come to a prompt, too";
  auto turn = LookOn({1});
  EXPECT_EQ(turn.reader, 1);
  EXPECT_THAT(turn.notices, ElementsAre("rank 1 waits for input: lending it the terminal"));
}

TEST_F(TerminalTurnsTest, BetweenTwoPromptsItKeepsTheTerminal) {
  LookOn({1, 2});
  EXPECT_EQ(Look({2}).reader, std::nullopt);
  auto turn = Look({1, 2});
  EXPECT_EQ(turn.reader, 1);
  EXPECT_THAT(turn.notices, IsEmpty());
}

TEST_F(TerminalTurnsTest, ASecondRankWaitsItsTurn) {
  LookOn({2});
  auto turn = LookOn({1, 2});
  EXPECT_EQ(turn.reader, 2);
  EXPECT_THAT(turn.notices,
              ElementsAre("rank 1 waits for input, and for the terminal, which rank 2 has"));
  turn = LookOn({1});
  EXPECT_EQ(turn.reader, 1);
  EXPECT_THAT(turn.notices, ElementsAre("rank 1 waits for input: lending it the terminal"));
}

TEST_F(TerminalTurnsTest, TheLowestRankThatWaitsIsNext) {
  LookOn({3}, 0);
  LookOn({1, 3}, 0);
  EXPECT_EQ(LookOn({1, 3}).reader, 1);
}

TEST_F(TerminalTurnsTest, TheRankThatHasTheTerminalItselfComesFirst) {
  auto turn = LookOn({1}, 0);
  EXPECT_EQ(turn.reader, std::nullopt);
  EXPECT_THAT(turn.notices,
              ElementsAre("rank 1 waits for input, and for the terminal, which rank 0 has"));
  EXPECT_EQ(Look({1}).reader, std::nullopt) << "rank 0 may be between two prompts";
  EXPECT_EQ(LookOn({1}).reader, 1);
  turn = Look({1}, 0);
  EXPECT_EQ(turn.reader, std::nullopt) << "two would read the same keys";
  EXPECT_THAT(turn.notices,
              ElementsAre("rank 1 waits for input, and for the terminal, which rank 0 has"));
  turn = LookOn({1});
  EXPECT_EQ(turn.reader, 1);
  EXPECT_THAT(turn.notices, IsEmpty());
}

TEST_F(TerminalTurnsTest, ARankThatEndsGivesTheTerminalBack) {
  LookOn({1, 3});
  EXPECT_EQ(LookOn({3}).reader, 3);
  EXPECT_EQ(LookOn({}).reader, std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
