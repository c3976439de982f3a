#include "agent/coordination/newcomer_watch.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

// Node 1 runs alone in a job of at most 3 nodes.
struct NewcomerWatchTest : testing::Test {
  NewcomerWatchTest() { Join(1); }
  Roster::Node& Join(uint64_t node, std::optional<int> claim = {}) {
    Hello hello{.node = node, .name = "n" + std::to_string(node)};
    hello.node_rank = claim;
    return roster_.Register(node, hello, now_).node;
  }
  std::string Newcomer() { return watch_.Look(roster_, round_, now_).value_or(""); }

  TimePoint now_{std::chrono::hours(1)};
  Roster roster_{1, 3};
  RoundInProgress round_{1, {{.node = 1}}, {}};
  NewcomerWatch watch_{3, seconds(30)};
};

TEST_F(NewcomerWatchTest, OneNewcomerWaitsForTheLastCall) {
  Join(2);
  EXPECT_EQ(Newcomer(), "");
  ASSERT_EQ(watch_.deadline(), now_ + seconds(30));
  now_ += seconds(30);
  EXPECT_EQ(Newcomer(), "n2");
}

TEST_F(NewcomerWatchTest, NewcomersThatFillTheJobJoinAtOnce) {
  Join(2);
  EXPECT_EQ(Newcomer(), "");
  Join(3);
  EXPECT_EQ(Newcomer(), "n3");
}

TEST_F(NewcomerWatchTest, ANodeThatLeavesOrStillRunsIsNoNewcomer) {
  Roster::Node& node = Join(2);
  EXPECT_EQ(Newcomer(), "");
  node.is_leaving = true;
  EXPECT_EQ(Newcomer(), "");
  EXPECT_FALSE(watch_.deadline()) << "the last call is over";
  node.is_leaving = false;
  node.work = NodeState::kStopping;
  EXPECT_EQ(Newcomer(), "");
  EXPECT_FALSE(watch_.deadline());
}

TEST_F(NewcomerWatchTest, AClaimOfARankInTheRoundDoesNotStopIt) {
  roster_.at(1).hello.node_rank = 0;
  Join(2, 0);
  Join(3, 0);
  EXPECT_EQ(Newcomer(), "");
  EXPECT_FALSE(watch_.deadline());
}

}  // namespace
}  // namespace rankrun::agent
