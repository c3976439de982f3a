#include "agent/guardian/next_incarnation.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLongLife{60};
constexpr milliseconds kShortLife{20};

JobRecord OneNode(int used, int most) {
  return {.node_id = 7,
          .incarnation = 4,
          .may_restart = true,
          .restarts = RestartsUsed{.used = used, .most = most, .consecutive_failures = 2},
          .state = "s"};
}

TEST(NextIncarnationTest, AJobThatMayNotRestartEndsSilently) {
  JobRecord last = OneNode(0, 3);
  last.may_restart = false;
  NextIncarnation next = DecideNextIncarnation(last, 0, kLongLife);
  EXPECT_FALSE(next.starts);
  EXPECT_EQ(next.words, "");
}

TEST(NextIncarnationTest, WithBudgetTheNextOneStartsAtOnceAndUsesOne) {
  NextIncarnation next = DecideNextIncarnation(OneNode(0, 3), 0, kLongLife);
  EXPECT_TRUE(next.starts);
  EXPECT_EQ(next.pause, Duration::zero());
  EXPECT_EQ(next.words, "starting again: restart 1 of 3");
  JobRecord expected = OneNode(1, 3);
  expected.incarnation = 5;
  EXPECT_EQ(next.record, expected);
}

TEST(NextIncarnationTest, WithoutBudgetItEnds) {
  NextIncarnation next = DecideNextIncarnation(OneNode(3, 3), 0, kLongLife);
  EXPECT_FALSE(next.starts);
  EXPECT_EQ(next.words, "3 of 3 restarts used");
  next = DecideNextIncarnation(OneNode(0, 0), 0, kLongLife);
  EXPECT_FALSE(next.starts);
  EXPECT_EQ(next.words, "") << "nobody had asked for restarts";
}

TEST(NextIncarnationTest, ForSeveralNodesTheCoordinatorCounts) {
  JobRecord last{.incarnation = 1'000'000, .may_restart = true, .state = "round"};
  NextIncarnation next = DecideNextIncarnation(last, 0, kLongLife);
  EXPECT_TRUE(next.starts);
  EXPECT_EQ(next.words, "starting again");
  EXPECT_FALSE(next.record.restarts);
  EXPECT_EQ(next.record.state, "round");
  EXPECT_EQ(next.record.incarnation, 1'000'001);
}

TEST(NextIncarnationTest, AgentsThatDieAtOnceAgainAndAgainGetPauses) {
  std::vector<Duration> pauses;
  JobRecord record = OneNode(0, 100);
  int deaths = 0;
  for (int i = 0; i < 15; ++i) {
    NextIncarnation next = DecideNextIncarnation(record, deaths, kShortLife);
    ASSERT_TRUE(next.starts);
    pauses.push_back(next.pause);
    record = next.record;
    deaths = next.quick_deaths;
  }
  std::vector<Duration> first(pauses.begin(), pauses.begin() + 7);
  EXPECT_EQ(first, (std::vector<Duration>{milliseconds(0), milliseconds(0), milliseconds(0),
                                          milliseconds(0), milliseconds(100), milliseconds(200),
                                          milliseconds(400)}));
  EXPECT_EQ(pauses.back(), seconds(30));
  EXPECT_EQ(DecideNextIncarnation(record, 5, kShortLife).words,
            "starting again in 0.200 s: restart 16 of 100");
}

TEST(NextIncarnationTest, ALongLifeBreaksTheRow) {
  NextIncarnation next = DecideNextIncarnation(OneNode(0, 100), 10, seconds(1));
  EXPECT_EQ(next.pause, Duration::zero());
  EXPECT_EQ(next.quick_deaths, 0);
}

}  // namespace
}  // namespace rankrun::agent
