#include "agent/coordination/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimePoint kStart{std::chrono::hours(1)};

struct RosterTest : testing::Test {
  static Hello HelloOf(uint64_t node, int incarnation = 0) {
    return {.node = node,
            .incarnation = incarnation,
            .name = "n" + std::to_string(node),
            .min_nodes = 1,
            .max_nodes = 2};
  }
  std::string Reason(PeerId peer, const Hello& hello) {
    return roster_.ReasonToRefuse(peer, hello, 0);
  }

  Roster roster_{1, 2};
};

TEST_F(RosterTest, ANewConnectionReplacesTheNodesEarlierOne) {
  EXPECT_FALSE(roster_.Register(1, HelloOf(7), kStart).replaced);
  EXPECT_FALSE(roster_.Register(1, HelloOf(7), kStart).replaced) << "the same connection";
  Roster::Arrival arrival = roster_.Register(2, HelloOf(7), kStart);
  EXPECT_EQ(arrival.replaced, PeerId{1});
  EXPECT_FALSE(arrival.is_new || arrival.is_next_incarnation);
  EXPECT_EQ(roster_.Disconnect(1), nullptr) << "the loss of the old connection changes nothing";
  EXPECT_EQ(roster_.NodeOf(2), &roster_.at(7));
}

TEST_F(RosterTest, OnlyALaterIncarnationReplacesAnAgent) {
  roster_.Register(1, HelloOf(7, 1), kStart);
  EXPECT_THAT(Reason(2, HelloOf(7, 0)), HasSubstr("a newer agent of this node has joined"));
  EXPECT_EQ(Reason(2, HelloOf(7, 2)), "");
  EXPECT_TRUE(roster_.Register(2, HelloOf(7, 2), kStart).is_next_incarnation);
}

TEST_F(RosterTest, ANodeThatWasGivenUpReturnsWithTheNextIncarnation) {
  roster_.GiveUp(roster_.Register(1, HelloOf(7), kStart).node);
  roster_.Remove(7);
  EXPECT_EQ(roster_.NodeOf(1), nullptr);
  EXPECT_THAT(Reason(2, HelloOf(7)), HasSubstr("given up"));
  EXPECT_EQ(Reason(2, HelloOf(7, 1)), "");
}

TEST_F(RosterTest, AClaimIsFreeOnceItsNodeHasNoConnection) {
  Hello first = HelloOf(1);
  Hello second = HelloOf(2);
  first.node_rank = second.node_rank = 0;
  roster_.Register(1, first, kStart);
  EXPECT_EQ(Reason(2, second), "node rank 0 is claimed by n2 and by n1, which joined first");
  roster_.Disconnect(1);
  EXPECT_EQ(Reason(2, second), "");
}

TEST_F(RosterTest, AnExpectedNodeIsSilentLaterAndIsNoNewcomer) {
  roster_.Expect(HelloOf(7), kStart);
  EXPECT_THAT(roster_.Silent(kStart + seconds(4), seconds(5), 0), ElementsAre());
  EXPECT_THAT(roster_.Silent(kStart + seconds(5), seconds(5), 0), ElementsAre(7));
  EXPECT_FALSE(roster_.Register(1, HelloOf(7), kStart).is_new);
}

TEST_F(RosterTest, TheOwnNodeIsSilentOnlyWithoutAConnection) {
  roster_.Register(1, HelloOf(7), kStart);
  EXPECT_THAT(roster_.Silent(kStart + seconds(5), seconds(5), 7), ElementsAre());
  roster_.Disconnect(1);
  EXPECT_THAT(roster_.Silent(kStart + seconds(5), seconds(5), 7), ElementsAre(7));
}

TEST_F(RosterTest, NodesThatLeaveAreNotCounted) {
  for (uint64_t id : {1u, 2u}) roster_.Register(id, HelloOf(id), kStart).node.is_leaving = true;
  EXPECT_TRUE(roster_.HasFewerThanMin());
  EXPECT_EQ(roster_.RollCall(seconds(10)), "0 of 1 node is here after 10.0 s");
  roster_.Disconnect(2);
  EXPECT_THAT(roster_.RemoveDeparted(), ElementsAre(2));
  EXPECT_TRUE(roster_.Contains(1)) << "it is still connected";
}

TEST_F(RosterTest, TheRollCallNamesAFewNodes) {
  for (uint64_t id = 1; id <= 9; ++id) roster_.Register(id, HelloOf(id), kStart);
  EXPECT_EQ(roster_.RollCall(seconds(10)),
            "9 of 1 node is here after 10.0 s (n1, n2, n3, n4, n5, n6, n7, n8, ...)");
}

}  // namespace
}  // namespace rankrun::agent
