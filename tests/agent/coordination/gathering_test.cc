#include "agent/coordination/gathering.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

// A job of 2 to 3 nodes.
struct GatheringTest : testing::Test {
  Roster::Node& Join(uint64_t node) {
    return roster_.Register(node, {.node = node, .name = "n"}, now_).node;
  }
  // Returns the number of nodes of the round that is formed now; 0: none.
  size_t Formed() {
    auto candidates = gathering_.TryForm(roster_, now_);
    return candidates ? candidates->size() : 0;
  }
  void Begin(bool waits_for_newcomers) { gathering_.Begin(waits_for_newcomers, now_); }

  TimePoint now_{std::chrono::hours(1)};
  Roster roster_{2, 3};
  Gathering gathering_{{.min_nodes = 2, .max_nodes = 3, .last_call = seconds(30)}};
};

TEST_F(GatheringTest, FewerThanMinFormNoRound) {
  Begin(false);
  Join(1);
  EXPECT_EQ(Formed(), 0u);
  EXPECT_FALSE(gathering_.IsDue(now_ + seconds(100)));
}

TEST_F(GatheringTest, TheLastCallBeginsWhenMinAreThereAndAgainWhenTheyWereNot) {
  Begin(true);
  Join(1);
  Roster::Node& second = Join(2);
  EXPECT_EQ(Formed(), 0u);
  now_ += seconds(20);
  second.is_leaving = true;
  EXPECT_EQ(Formed(), 0u);
  second.is_leaving = false;
  now_ += seconds(20);
  EXPECT_EQ(Formed(), 0u);
  now_ += seconds(30);
  EXPECT_TRUE(gathering_.IsDue(now_));
  EXPECT_EQ(Formed(), 2u);
}

TEST_F(GatheringTest, ARestartWaitsOnlyForNodesThatMayReconnect) {
  Begin(false);
  Join(1);
  Join(2);
  Join(3);
  roster_.Disconnect(3);
  EXPECT_EQ(Formed(), 0u);
  roster_.Remove(3);
  EXPECT_EQ(Formed(), 2u);
}

TEST_F(GatheringTest, NothingFormsWhileWorkersRunOrMayLive) {
  Begin(false);
  Join(1);
  Join(2);
  Roster::Node& old = Join(3);
  old.is_leaving = true;
  old.work = NodeState::kStopping;
  EXPECT_EQ(Formed(), 0u);
  old.work = NodeState::kNone;
  gathering_.WaitUntil(now_ + seconds(5));
  gathering_.WaitUntil(now_ + seconds(1));
  EXPECT_EQ(Formed(), 0u);
  EXPECT_EQ(gathering_.deadline(), now_ + seconds(5));
  now_ += seconds(5);
  EXPECT_EQ(Formed(), 2u);
}

TEST_F(GatheringTest, AStuckNodeIsNeitherWaitedForNorTakenIn) {
  Begin(false);
  Join(1);
  Join(2);
  Roster::Node& stuck = Join(3);
  stuck.work = NodeState::kStopping;
  stuck.hello.stuck = StuckProcess{};
  EXPECT_EQ(Formed(), 2u);
}

TEST_F(GatheringTest, TheRollCallIsTakenOncePerPeriod) {
  Begin(true);
  EXPECT_FALSE(gathering_.TakeRollCall(now_ + seconds(9)));
  EXPECT_TRUE(gathering_.TakeRollCall(now_ + seconds(10)));
  EXPECT_FALSE(gathering_.TakeRollCall(now_ + seconds(10)));
}

}  // namespace
}  // namespace rankrun::agent
