#include "agent/coordination/round_in_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Round 3: node 20 has ranks 0 and 1, node 10 has ranks 2 to 4.
RoundInProgress TwoNodes() {
  return {3,
          {{.node = 20, .name = "n20", .slots = 2},
           {.node = 10, .name = "n10", .slots = 3, .first_rank = 2}},
          {"10.0.0.20"}};
}

TEST(RoundInProgressTest, EachNodeGetsItsPlaceAndTheDigestOfTheRound) {
  RoundInProgress round = TwoNodes();
  Prepare message = round.PrepareFor(10);
  EXPECT_EQ(message.round, 3);
  EXPECT_EQ(message.node_rank, 1);
  EXPECT_EQ(message.node_count, 2);
  EXPECT_EQ(message.first_rank, 2);
  EXPECT_EQ(message.world_size, 5);
  EXPECT_EQ(message.record, round.PrepareFor(20).record);
}

TEST(RoundInProgressTest, AnAnswerCountsOnce) {
  RoundInProgress round = TwoNodes();
  EXPECT_FALSE(round.RecordAnswer(10)) << "none is awaited yet";
  round.AwaitAll();
  EXPECT_TRUE(round.RecordAnswer(10));
  EXPECT_FALSE(round.RecordAnswer(10));
  EXPECT_FALSE(round.RecordAnswer(30)) << "a node that is not in the round";
  EXPECT_EQ(round.awaited(), 1);
  EXPECT_TRUE(round.IsAwaited(20));
}

TEST(RoundInProgressTest, ARemovedNodeOwesNoAnswer) {
  RoundInProgress round = TwoNodes();
  round.AwaitAll();
  EXPECT_TRUE(round.Remove(10));
  EXPECT_FALSE(round.Contains(10));
  EXPECT_EQ(round.awaited(), 1);
  EXPECT_EQ(round.assignments().size(), 2u) << "the record still names it";
  round.AwaitAll();
  EXPECT_EQ(round.awaited(), 1);
}

TEST(RoundInProgressTest, OnlyTheNodeOfRank0HasTheStoreAndItsAllowlist) {
  RoundInProgress round = TwoNodes();
  round.RecordPrepared(10, {3, 77, {"10.0.0.10"}});
  round.RecordPrepared(20, {3, 5, {"10.0.0.20"}});
  EXPECT_THAT(round.StartRoundFor(10).store_addresses, ElementsAre("10.0.0.20"));
  EXPECT_EQ(round.StartRoundFor(10).store_port, 5);
  EXPECT_THAT(round.StartRoundFor(10).store_allowlist, IsEmpty());
  EXPECT_THAT(round.StartRoundFor(20).store_allowlist, ElementsAre("10.0.0.10", "10.0.0.20"));
}

TEST(RoundInProgressTest, TheStoreHasAllAddressesOfItsHostThatOtherHostsReach) {
  RoundInProgress round = TwoNodes();
  round.RecordPrepared(10, {3, 77, {"10.0.0.10"}});
  round.RecordPrepared(
      20, {3, 5, {"127.0.0.1", "172.17.0.2", "10.0.0.20", "::1", "fe80::1", "fd00::20", "bad"}});
  EXPECT_THAT(round.StartRoundFor(10).store_addresses,
              ElementsAre("10.0.0.20", "172.17.0.2", "fd00::20"))
      << "that of the hello first, each once";
}

TEST(RoundInProgressTest, AHostWithManyAddressesOffersSome) {
  RoundInProgress round = TwoNodes();
  std::vector<std::string> own;
  for (int i = 100; i < 164; ++i) own.push_back("10.0.0." + std::to_string(i));
  round.RecordPrepared(20, {3, 5, own});
  auto offered = round.StartRoundFor(10).store_addresses;
  ASSERT_EQ(offered.size(), 9u);
  EXPECT_EQ(offered[0], "10.0.0.20");
  EXPECT_EQ(offered[8], "10.0.0.107");
}

TEST(RoundInProgressTest, UnfinishedRanksAreThoseOfAwaitedNodes) {
  RoundInProgress round = TwoNodes();
  round.AwaitAll();
  round.RecordUnfinished(10, {0, 2});
  EXPECT_EQ(
      round.UnfinishedText(),
      "ranks 2, 4 on n10, ranks 0, 1 on n20; nothing visible shows whether they wait for rank "
      "3, which ended with exit code 0");
  round.RecordAnswer(20);
  round.RecordUnfinished(10, {});
  EXPECT_EQ(round.UnfinishedText(), "n10");
}

}  // namespace
}  // namespace rankrun::agent
