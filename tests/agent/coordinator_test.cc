#include "agent/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "agent/exit_codes.h"
#include "tests/agent/coordinator_fixture.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::CoordinatorTest;
using testing::HasSubstr;

const Cause kRank3{.text = "rank 3 failed", .exit_code = 9};
const Cause kLostPeer{.text = "rank 0 lost its peer", .exit_code = 1, .by_itself = false};

TEST_F(CoordinatorTest, FormsAtOnceWhenMaxAreThere) {
  Open(2, 3);
  Join(1);
  Join(2);
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Join(3);
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  ASSERT_TRUE(Told<Prepare>(3));
  EXPECT_EQ(Told<Prepare>(3)->node_rank, 2);
  EXPECT_EQ(Told<Prepare>(3)->first_rank, 4);
  EXPECT_EQ(Told<Prepare>(3)->world_size, 6);
  EXPECT_EQ(Told<Prepare>(3)->record, Told<Prepare>(1)->record);
}

TEST_F(CoordinatorTest, MinNodesWaitForTheLastCall) {
  Open(2, 3);
  Join(1);
  Join(2);
  for (int i = 0; i < 29; ++i) {
    now_ += seconds(1);
    AllBeat({1, 2});
  }
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Pass(seconds(1));
  ASSERT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(Told<Prepare>(1)->node_count, 2);
}

TEST_F(CoordinatorTest, NobodyGoesBeforeAllHavePrepared) {
  Open(2, 2);
  Join(1);
  Join(2);
  Say(1, Prepared{1, 5});
  EXPECT_FALSE(Told<Go>(1));
  Say(2, Prepared{0, 0});
  EXPECT_FALSE(Told<Go>(1)) << "for another round";
  Say(2, Prepared{1, 0});
  ASSERT_TRUE(Told<Go>(2));
  EXPECT_EQ(Told<Go>(2)->store_port, 5);
  EXPECT_TRUE(kept_->is_granted);
}

TEST_F(CoordinatorTest, TheStoresNodeAloneIsToldWhoseClientsMayCome) {
  Open(2, 2);
  Join(1);
  Join(2);
  Say(1, Prepared{1, 5, {"10.0.0.1", "127.0.0.1"}});
  Say(2, Prepared{1, 0, {"10.0.0.2", "10.1.0.2", "127.0.0.1"}});
  ASSERT_TRUE(Told<Go>(1) && Told<Go>(2));
  EXPECT_THAT(Told<Go>(1)->store_clients,
              testing::ElementsAre("10.0.0.1", "10.0.0.2", "10.1.0.2", "127.0.0.1"));
  EXPECT_THAT(Told<Go>(2)->store_clients, testing::IsEmpty());
  Return(1, 7, 0, Work::kPrepared, 1);  // its connection broke before it heard that
  ASSERT_TRUE(Told<Go>(7));
  EXPECT_EQ(*Told<Go>(7), *Told<Go>(1));
}

TEST_F(CoordinatorTest, TheStoreIsOpenToAllIfOneNodesAddressesAreNotKnown) {
  Open(2, 2);
  Join(1);
  Join(2);
  Say(1, Prepared{1, 5, {"10.0.0.1"}});
  Say(2, Prepared{1, 0, {}});
  ASSERT_TRUE(Told<Go>(1));
  EXPECT_THAT(Told<Go>(1)->store_clients, testing::IsEmpty());
}

TEST_F(CoordinatorTest, AFailureStopsTheOthersAndBeginsTheNextAttempt) {
  policy_.restart.max_restarts = 1;
  Run(3);
  Say(2, Failed{1, kRank3});
  EXPECT_FALSE(Told<Stop>(2)) << "it stops by itself";
  ASSERT_TRUE(Told<Stop>(1) && Told<Stop>(3));
  EXPECT_EQ(Told<Stop>(1)->why, "rank 3 failed");
  EXPECT_TRUE(Told<Stop>(1)->is_failure);
  Say(1, Stopped{1});
  Say(3, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Say(2, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(Told<Prepare>(1)->round, 2);
  EXPECT_EQ(Told<Prepare>(1)->attempt, 1);
  EXPECT_EQ(kept_->history.restarts, 1);
}

TEST_F(CoordinatorTest, AUsedBudgetEndsTheJobWithTheCause) {
  Run(2);
  Say(2, Failed{1, kRank3});
  Say(2, Stopped{1});
  EXPECT_FALSE(Told<Verdict>(1));
  Say(1, Stopped{1});
  for (PeerId peer : {1, 2}) {
    ASSERT_TRUE(Told<Verdict>(peer));
    EXPECT_EQ(*Told<Verdict>(peer), (Verdict{9, "rank 3 failed"}));
  }
}

TEST_F(CoordinatorTest, WhatFailedByItselfIsABetterCauseThanALostPeer) {
  Run(2);
  Say(1, Failed{1, kLostPeer});
  Say(2, Failed{1, kRank3});
  Say(1, Stopped{1});
  Say(2, Stopped{1});
  EXPECT_EQ(Told<Verdict>(1)->text, "rank 3 failed");
}

TEST_F(CoordinatorTest, ALeaveCostsNoRestartWhileMinIsMet) {
  Run(3, 2);
  Say(3, Leave{"SIGTERM"});
  Say(3, Stopped{1});
  Act(PeerLost{3});
  Say(1, Stopped{1});
  Say(2, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(Told<Prepare>(1)->node_count, 2);
  EXPECT_EQ(kept_->history.restarts, 0);
}

TEST_F(CoordinatorTest, ALeaveBelowMinEndsTheJobAsDrained) {
  Run(2);
  Say(2, Leave{"SIGTERM"});
  Say(2, Stopped{1});
  Say(1, Stopped{1});
  ASSERT_TRUE(Told<Verdict>(1));
  EXPECT_EQ(Told<Verdict>(1)->exit_code, kExitDrained);
}

TEST_F(CoordinatorTest, TheJobDoesNotOutliveTheLeaveOfItsOwnNode) {
  Run(3, 2);
  Say(1, Leave{"SIGTERM"});
  for (PeerId peer : {1, 2, 3}) Say(peer, Stopped{1});
  EXPECT_EQ(Told<Verdict>(2)->exit_code, kExitDrained);
}

TEST_F(CoordinatorTest, ACloseEndsTheJobForAll) {
  policy_.restart.max_restarts = 3;
  Run(2);
  Say(2, Close{{.text = "Ctrl-C at n2", .exit_code = 130}});
  EXPECT_TRUE(Told<Stop>(1));
  Say(1, Stopped{1});
  Say(2, Stopped{1});
  EXPECT_EQ(Told<Verdict>(1)->exit_code, 130);
}

TEST_F(CoordinatorTest, ANewcomerIsLetInAtOnceIfItFillsTheJob) {
  Open(1, 2);
  Join(1);
  Pass(policy_.last_call);
  Say(1, Prepared{1, 5});
  Join(2);
  ASSERT_TRUE(Told<Stop>(1));
  EXPECT_FALSE(Told<Stop>(1)->is_failure);
  Say(1, Stopped{1});
  EXPECT_EQ(Told<Prepare>(2)->node_count, 2);
  EXPECT_EQ(kept_->history.restarts, 0);
}

TEST_F(CoordinatorTest, NobodyIsInterruptedOnceANodeIsDone) {
  Open(2, 3);
  Join(1);
  Join(2);
  for (int i = 0; i < 6; ++i, now_ += seconds(6)) AllBeat({1, 2});
  Say(1, Prepared{1, 5});
  Say(2, Prepared{1, 5});
  Say(2, Done{1});
  Join(3);
  Pass(seconds(1));
  EXPECT_FALSE(Told<Stop>(1));
}

TEST_F(CoordinatorTest, ASpareTakesTheLostNodesPlaceAndSparesSucceedToo) {
  Run(2);
  Join(3);
  EXPECT_FALSE(Told<Stop>(1));
  Act(PeerLost{2});
  for (int i = 0; i < 9; ++i, now_ += milliseconds(1'200)) AllBeat({1, 3});
  Pass(Duration::zero());
  ASSERT_TRUE(Told<Stop>(1));
  Say(1, Stopped{1});
  Pass(policy_.kill_bound);
  ASSERT_TRUE(Told<Prepare>(3));
  Join(4);
  for (PeerId peer : {1, 3}) Say(peer, Prepared{2, 5});
  for (PeerId peer : {1, 3}) Say(peer, Done{2});
  for (PeerId peer : {1, 3}) Say(peer, FinishSeen{2});
  EXPECT_EQ(*Told<Verdict>(4), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, TheNextIncarnationIsProofAndCostsARestart) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Act(PeerLost{2});
  EXPECT_FALSE(Told<Stop>(1)) << "a broken link proves nothing";
  Return(2, 12, 1, Work::kNone, 0);
  ASSERT_TRUE(Told<Stop>(1));
  EXPECT_EQ(Told<Stop>(1)->why, "the agent of node n2 died");
  Say(1, Stopped{1});
  EXPECT_EQ(Told<Prepare>(12)->round, 2);
  EXPECT_EQ(kept_->history.restarts, 1);
}

TEST_F(CoordinatorTest, SilenceActsAfterTheTimeoutAndTheKillBoundPasses) {
  Run(2, 1);
  now_ += milliseconds(9'900);
  Say(1, Beat{1});
  EXPECT_FALSE(Told<Stop>(1));
  Pass(milliseconds(1'100));
  ASSERT_TRUE(Told<Stop>(1));
  EXPECT_TRUE(kept_->has_lost);
  Say(1, Stopped{1});
  Pass(milliseconds(999));
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Pass(milliseconds(1));
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(kept_->history.restarts, 0) << "nobody failed";
}

TEST_F(CoordinatorTest, ALostNodeEndsTheJobIfThatWasAskedFor) {
  policy_.on_lost_node = LostNode::kStop;
  Run(2, 1);
  now_ += milliseconds(9'900);
  Say(1, Beat{1});
  Pass(milliseconds(1'100));
  Say(1, Stopped{1});
  EXPECT_EQ(Told<Verdict>(1)->exit_code, kExitTooFewNodes);
}

TEST_F(CoordinatorTest, ReconnectingWithLiveWorkersChangesNothing) {
  Run(2);
  Act(PeerLost{2});
  Pass(seconds(5));
  Return(2, 12, 0, Work::kRunning, 1);
  EXPECT_EQ(phase(), JobPhase::kRunning);
  EXPECT_FALSE(Told<Stop>(1) || Told<Stop>(12));
}

TEST_F(CoordinatorTest, ClaimsOfTheSameRankAreRefusedByName) {
  Open(2, 2);
  Hello hello = HelloOf(1);
  hello.node_rank = 1;
  Say(1, hello);
  Hello second = HelloOf(2);
  second.node_rank = 1;
  Say(2, second);
  ASSERT_TRUE(Told<Refusal>(2));
  EXPECT_EQ(Told<Refusal>(2)->text, "node rank 1 is claimed by n2 and by n1, which came first");
}

TEST_F(CoordinatorTest, AnotherNnodesIsRefused) {
  Open(2, 4);
  Hello hello = HelloOf(1);
  hello.min_nodes = 3;
  Say(1, hello);
  EXPECT_EQ(Told<Refusal>(1)->text, "this node was started with --nnodes 3:4, the job has 2:4");
}

TEST_F(CoordinatorTest, WhatMakesNoSenseIsRefused) {
  Open(1, 2);
  Hello hello = HelloOf(1);
  hello.slots = 0;
  Say(1, hello);
  EXPECT_TRUE(Told<Refusal>(1));
  hello = HelloOf(2);
  hello.round = std::numeric_limits<int>::max();
  Say(2, hello);
  EXPECT_TRUE(Told<Refusal>(2));
}

TEST_F(CoordinatorTest, AHangAtTheEndNamesTheRanks) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(3);
  Say(1, Done{1});
  Say(3, Done{1});
  Pass(policy_.finish_timeout);
  ASSERT_TRUE(Told<Stop>(2));
  EXPECT_THAT(Told<Stop>(2)->why, HasSubstr("ranks 2, 3 on n2"));
  for (PeerId peer : {1, 2, 3}) Say(peer, Stopped{1});
  EXPECT_EQ(Told<Verdict>(1)->exit_code, kExitHang);
}

TEST_F(CoordinatorTest, AHangAtTheEndNamesThoseThatHaveNotFinished) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(3);
  Say(1, Done{1});
  Say(3, Beat{1, std::vector{0, 1, 7}});
  Say(2, Beat{1, std::vector{1}});
  EXPECT_EQ(*Told<Beat>(2), Beat{1}) << "without what had been told";
  Say(2, Beat{2});
  Pass(policy_.finish_timeout);
  ASSERT_TRUE(Told<Stop>(2));
  EXPECT_THAT(Told<Stop>(2)->why, HasSubstr(": rank 3 on n2, ranks 4, 5 on n3"));
}

TEST_F(CoordinatorTest, WhatHadFinishedInAnEarlierRoundIsForgotten) {
  policy_.node_timeout = milliseconds(10'000'000);
  policy_.restart.max_restarts = 1;
  Run(2);
  Say(2, Beat{1, std::vector{1}});
  Say(1, Failed{1, {.text = "rank 0 failed", .rank = 0}});
  for (PeerId peer : {1, 2}) Say(peer, Stopped{1});
  for (PeerId peer : {1, 2}) Say(peer, Prepared{2, 0});
  ASSERT_EQ(phase(), JobPhase::kRunning);
  Say(1, Done{2});
  Pass(policy_.finish_timeout);
  ASSERT_TRUE(Told<Stop>(2));
  EXPECT_THAT(Told<Stop>(2)->why, HasSubstr(": ranks 2, 3 on n2"));
}

TEST_F(CoordinatorTest, SuccessIsToldInTwoPhases) {
  Run(2);
  Say(1, Done{1});
  Say(2, Done{1});
  EXPECT_TRUE(Told<Finish>(1) && Told<Finish>(2));
  Say(1, FinishSeen{1});
  EXPECT_FALSE(Told<Verdict>(1));
  Say(2, FinishSeen{1});
  EXPECT_EQ(*Told<Verdict>(1), (Verdict{0, ""}));
  for (PeerId peer : {1, 2}) {
    Say(peer, Stopped{1});
    Act(PeerLost{peer});
  }
  EXPECT_TRUE(has_retired_);
}

TEST_F(CoordinatorTest, WithoutEnoughNodesItGivesUpAndTellsWhoIsThere) {
  policy_.node_timeout = milliseconds(10'000'000);
  Open(2, 2);
  Join(1);
  Pass(policy_.join_timeout);
  EXPECT_EQ(*Told<Verdict>(1),
            (Verdict{kExitNoRendezvous,
                     "gave up waiting for nodes: 1 of 2 nodes are here after 600.0 s (n1)"}));
}

}  // namespace
}  // namespace rankrun::agent
