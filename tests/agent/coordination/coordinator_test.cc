#include "agent/coordination/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "agent/job/exit_codes.h"
#include "tests/agent/coordination/coordinator_fixture.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;

const Cause kRank3{.text = "rank 3 failed", .exit_code = 9};
const Cause kLostPeer{.text = "rank 0 lost its peer", .exit_code = 1, .is_primary = false};

TEST_F(CoordinatorTest, FormsAtOnceWhenMaxAreThere) {
  Open(2, 3);
  Join(1);
  Join(2);
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Join(3);
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  ASSERT_TRUE(SentTo<Prepare>(3));
  EXPECT_EQ(SentTo<Prepare>(3)->node_rank, 2);
  EXPECT_EQ(SentTo<Prepare>(3)->first_rank, 4);
  EXPECT_EQ(SentTo<Prepare>(3)->world_size, 6);
  EXPECT_EQ(SentTo<Prepare>(3)->record, SentTo<Prepare>(1)->record);
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
  Advance(seconds(1));
  ASSERT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->node_count, 2);
}

TEST_F(CoordinatorTest, AJobWhoseOtherNodesAreRefusedForTheirSecretEnds) {
  Open(3, 3);
  Join(1);
  Act(OthersRefused{"all have another secret"});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitNoRendezvous);
  EXPECT_EQ(SentTo<Verdict>(1)->text, "all have another secret");
}

TEST_F(CoordinatorTest, RefusedNodesDoNotEndAJobThatAnotherNodeHasJoined) {
  Open(3, 3);
  Join(1);
  Join(2);
  Act(OthersRefused{"x"});
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Join(3);
  Act(OthersRefused{"x"});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
}

TEST_F(CoordinatorTest, RefusedNodesDoNotEndAJobThatHasBegun) {
  Run(1);
  Act(OthersRefused{"x"});
  EXPECT_EQ(phase(), JobPhase::kRunning);
}

TEST_F(CoordinatorTest, NoNodeStartsBeforeAllHavePrepared) {
  Open(2, 2);
  Join(1);
  Join(2);
  Deliver(1, Prepared{1, 5});
  EXPECT_FALSE(SentTo<StartRound>(1));
  Deliver(2, Prepared{0, 0});
  EXPECT_FALSE(SentTo<StartRound>(1)) << "for another round";
  Deliver(2, Prepared{1, 0});
  ASSERT_TRUE(SentTo<StartRound>(2));
  EXPECT_EQ(SentTo<StartRound>(2)->store_port, 5);
  EXPECT_TRUE(persisted_->is_granted);
}

TEST_F(CoordinatorTest, OnlyTheStoresHostGetsTheAllowlist) {
  Open(2, 2);
  Join(1);
  Join(2);
  Deliver(1, Prepared{1, 5, {"10.0.0.1", "127.0.0.1"}});
  Deliver(2, Prepared{1, 0, {"10.0.0.2", "10.1.0.2", "127.0.0.1"}});
  ASSERT_TRUE(SentTo<StartRound>(1) && SentTo<StartRound>(2));
  EXPECT_THAT(SentTo<StartRound>(1)->store_allowlist,
              testing::ElementsAre("10.0.0.1", "10.0.0.2", "10.1.0.2", "127.0.0.1"));
  EXPECT_THAT(SentTo<StartRound>(2)->store_allowlist, testing::IsEmpty());
  Reconnect(1, 7, 0, NodeState::kPrepared,
            1);  // it had not received StartRound before its connection broke
  ASSERT_TRUE(SentTo<StartRound>(7));
  EXPECT_EQ(*SentTo<StartRound>(7), *SentTo<StartRound>(1));
}

TEST_F(CoordinatorTest, TheStoreIsOpenToAllIfOneNodesAddressesAreUnknown) {
  Open(2, 2);
  Join(1);
  Join(2);
  Deliver(1, Prepared{1, 5, {"10.0.0.1"}});
  Deliver(2, Prepared{1, 0, {}});
  ASSERT_TRUE(SentTo<StartRound>(1));
  EXPECT_THAT(SentTo<StartRound>(1)->store_allowlist, testing::IsEmpty());
}

TEST_F(CoordinatorTest, AFailureStopsTheOthersAndStartsTheNextAttempt) {
  policy_.restart.max_restarts = 1;
  Run(3);
  Deliver(2, Failed{1, kRank3});
  EXPECT_FALSE(SentTo<Stop>(2)) << "it stops by itself";
  ASSERT_TRUE(SentTo<Stop>(1) && SentTo<Stop>(3));
  EXPECT_EQ(SentTo<Stop>(1)->why, "rank 3 failed");
  EXPECT_TRUE(SentTo<Stop>(1)->is_failure);
  Deliver(1, Stopped{1});
  Deliver(3, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Deliver(2, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->round, 2);
  EXPECT_EQ(SentTo<Prepare>(1)->attempt, 1);
  EXPECT_EQ(persisted_->history.restarts, 1);
}

TEST_F(CoordinatorTest, AUsedBudgetEndsTheJobWithTheCause) {
  Run(2);
  Deliver(2, Failed{1, kRank3});
  Deliver(2, Stopped{1});
  EXPECT_FALSE(SentTo<Verdict>(1));
  Deliver(1, Stopped{1});
  for (PeerId peer : {1u, 2u}) {
    ASSERT_TRUE(SentTo<Verdict>(peer));
    EXPECT_EQ(*SentTo<Verdict>(peer), (Verdict{9, "rank 3 failed"}));
  }
}

TEST_F(CoordinatorTest, APrimaryFailureReplacesALostPeerAsTheCause) {
  Run(2);
  Deliver(1, Failed{1, kLostPeer});
  Deliver(2, Failed{1, kRank3});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(1)->text, "rank 3 failed");
}

TEST_F(CoordinatorTest, ALeaveCostsNoRestartWhileMinIsMet) {
  Run(3, 2);
  Deliver(3, Leave{"SIGTERM"});
  Deliver(3, Stopped{1});
  Act(PeerLost{3});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->node_count, 2);
  EXPECT_EQ(persisted_->history.restarts, 0);
}

TEST_F(CoordinatorTest, ALeaveBelowMinAfterAFailureEndsTheJobAsDrained) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1", .rank = 0}});
  Deliver(1, Stopped{1});
  Deliver(2, Leave{"it got SIGTERM"});
  Deliver(2, Stopped{1});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitDrained);
  EXPECT_EQ(coordinator_->outcome().exit_code, kExitDrained);
  EXPECT_EQ(coordinator_->outcome().reason, SentTo<Verdict>(1)->text);
  EXPECT_TRUE(coordinator_->outcome().is_fatal) << "so no worker's exit code replaces it";
}

TEST_F(CoordinatorTest, ALeaveBelowMinEndsTheJobAsDrained) {
  Run(2);
  Deliver(2, Leave{"SIGTERM"});
  Deliver(2, Stopped{1});
  Deliver(1, Stopped{1});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitDrained);
}

TEST_F(CoordinatorTest, TheJobDoesNotOutliveTheLeaveOfItsOwnNode) {
  Run(3, 2);
  Deliver(1, Leave{"SIGTERM"});
  for (PeerId peer : {1u, 2u, 3u}) Deliver(peer, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(2)->exit_code, kExitDrained);
}

TEST_F(CoordinatorTest, ACloseEndsTheJobForAll) {
  policy_.restart.max_restarts = 3;
  Run(2);
  Deliver(2, Close{{.text = "Ctrl-C at n2", .exit_code = 130}});
  EXPECT_TRUE(SentTo<Stop>(1));
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, 130);
}

TEST_F(CoordinatorTest, NeitherACloseNorAFailureIsASuccess) {
  Cause forged{.text = "all is well", .exit_code = 0};
  for (const MemberMessage& message :
       {MemberMessage(Close{forged}), MemberMessage(Failed{1, forged})}) {
    sent_.clear();
    Run(3);
    Deliver(1, message);
    for (PeerId peer : {1u, 2u, 3u}) Deliver(peer, Stopped{1});
    ASSERT_TRUE(SentTo<Verdict>(2));
    EXPECT_EQ(SentTo<Verdict>(2)->exit_code, kExitInternalError);
  }
}

TEST_F(CoordinatorTest, AClaimOfSuccessBeforeTheFirstRoundEndsNobody) {
  Open(2, 2);
  Join(1);
  Reconnect(2, 2, 0, NodeState::kFinished, 1);
  EXPECT_FALSE(SentTo<Verdict>(1));
  EXPECT_EQ(phase(), JobPhase::kGathering);
}

TEST_F(CoordinatorTest, AClaimOfSuccessBetweenRoundsEndsNobody) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Deliver(2, Failed{1, Cause{.text = "rank 2 failed", .exit_code = 9}});
  Deliver(2, Stopped{1});
  Act(PeerLost{2});
  Deliver(1, Stopped{1});
  ASSERT_EQ(phase(), JobPhase::kGathering);
  for (int round : {0, 1, 2}) Reconnect(3, 13, 0, NodeState::kFinished, round);
  EXPECT_FALSE(SentTo<Verdict>(1));
  EXPECT_EQ(phase(), JobPhase::kGathering);
}

TEST_F(CoordinatorTest, ANewcomerRestartsTheRoundAtOnceIfItFillsTheJob) {
  Open(1, 2);
  Join(1);
  Advance(policy_.last_call);
  Deliver(1, Prepared{1, 5});
  Join(2);
  ASSERT_TRUE(SentTo<Stop>(1));
  EXPECT_FALSE(SentTo<Stop>(1)->is_failure);
  Deliver(1, Stopped{1});
  EXPECT_EQ(SentTo<Prepare>(2)->node_count, 2);
  EXPECT_EQ(persisted_->history.restarts, 0);
}

TEST_F(CoordinatorTest, NoNewcomerInterruptsARoundOnceANodeIsDone) {
  Open(2, 3);
  Join(1);
  Join(2);
  for (int i = 0; i < 6; ++i, now_ += seconds(6)) AllBeat({1, 2});
  Deliver(1, Prepared{1, 5});
  Deliver(2, Prepared{1, 5});
  Deliver(2, Done{1});
  Join(3);
  Advance(seconds(1));
  EXPECT_FALSE(SentTo<Stop>(1));
}

TEST_F(CoordinatorTest, ASpareReplacesTheLostNodeAndSparesSucceedToo) {
  Run(2);
  Join(3);
  EXPECT_FALSE(SentTo<Stop>(1));
  Act(PeerLost{2});
  for (int i = 0; i < 9; ++i, now_ += milliseconds(1'200)) AllBeat({1, 3});
  Advance(Duration::zero());
  ASSERT_TRUE(SentTo<Stop>(1));
  Deliver(1, Stopped{1});
  Advance(policy_.kill_bound);
  ASSERT_TRUE(SentTo<Prepare>(3));
  Join(4);
  for (PeerId peer : {1u, 3u}) Deliver(peer, Prepared{2, 5});
  for (PeerId peer : {1u, 3u}) Deliver(peer, Done{2});
  for (PeerId peer : {1u, 3u}) Deliver(peer, FinishSeen{2});
  EXPECT_EQ(*SentTo<Verdict>(4), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, TheNextIncarnationIsProofAndCostsARestart) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Act(PeerLost{2});
  EXPECT_FALSE(SentTo<Stop>(1)) << "a broken link proves nothing";
  Reconnect(2, 12, 1, NodeState::kNone, 0);
  ASSERT_TRUE(SentTo<Stop>(1));
  EXPECT_EQ(SentTo<Stop>(1)->why, "the agent of node n2 died");
  Deliver(1, Stopped{1});
  EXPECT_EQ(SentTo<Prepare>(12)->round, 2);
  EXPECT_EQ(persisted_->history.restarts, 1);
}

TEST_F(CoordinatorTest, ASilentNodeIsLostAfterTheTimeoutAndItsKillBoundPasses) {
  Run(2, 1);
  now_ += milliseconds(9'900);
  Deliver(1, Beat{1});
  EXPECT_FALSE(SentTo<Stop>(1));
  Advance(milliseconds(1'100));
  ASSERT_TRUE(SentTo<Stop>(1));
  EXPECT_TRUE(persisted_->has_lost);
  Deliver(1, Stopped{1});
  Advance(milliseconds(999));
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Advance(milliseconds(1));
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(persisted_->history.restarts, 0) << "no worker failed";
}

TEST_F(CoordinatorTest, ALostNodeEndsTheJobIfSoConfigured) {
  policy_.on_lost_node = LostNode::kStop;
  Run(2, 1);
  now_ += milliseconds(9'900);
  Deliver(1, Beat{1});
  Advance(milliseconds(1'100));
  Deliver(1, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitTooFewNodes);
}

TEST_F(CoordinatorTest, ReconnectingWithLiveWorkersChangesNothing) {
  Run(2);
  Act(PeerLost{2});
  Advance(seconds(5));
  Reconnect(2, 12, 0, NodeState::kRunning, 1);
  EXPECT_EQ(phase(), JobPhase::kRunning);
  EXPECT_FALSE(SentTo<Stop>(1) || SentTo<Stop>(12));
}

TEST_F(CoordinatorTest, ClaimsOfTheSameRankAreRefusedByName) {
  Open(2, 2);
  Hello hello = HelloOf(1);
  hello.node_rank = 1;
  Deliver(1, hello);
  Hello second = HelloOf(2);
  second.node_rank = 1;
  Deliver(2, second);
  ASSERT_TRUE(SentTo<Refusal>(2));
  EXPECT_EQ(SentTo<Refusal>(2)->text, "node rank 1 is claimed by n2 and by n1, which joined first");
}

TEST_F(CoordinatorTest, AnotherNnodesIsRefused) {
  Open(2, 4);
  Hello hello = HelloOf(1);
  hello.min_nodes = 3;
  Deliver(1, hello);
  EXPECT_EQ(SentTo<Refusal>(1)->text, "this node was started with --nnodes 3:4, the job has 2:4");
}

TEST_F(CoordinatorTest, AnInvalidHelloIsRefused) {
  Open(1, 2);
  Hello hello = HelloOf(1);
  hello.slots = 0;
  Deliver(1, hello);
  EXPECT_TRUE(SentTo<Refusal>(1));
  hello = HelloOf(2);
  hello.round = std::numeric_limits<int>::max();
  Deliver(2, hello);
  EXPECT_TRUE(SentTo<Refusal>(2));
  hello = HelloOf(3);
  hello.name.assign(257, 'n');
  Deliver(3, hello);
  EXPECT_TRUE(SentTo<Refusal>(3));
}

TEST_F(CoordinatorTest, AConnectionIsOneNodes) {
  Open(1, 3);
  Deliver(1, HelloOf(1));
  Deliver(1, HelloOf(2));
  ASSERT_TRUE(SentTo<Refusal>(1));
  EXPECT_EQ(SentTo<Refusal>(1)->text, "this connection belongs to another node");
}

TEST_F(CoordinatorTest, TheNumberOfSparesIsLimited) {
  Open(2, 2);
  for (uint64_t id = 1; id <= 10'002; ++id) Deliver(id, HelloOf(id));
  EXPECT_FALSE(SentTo<Refusal>(10'002));
  Deliver(10'003, HelloOf(10'003));
  ASSERT_TRUE(SentTo<Refusal>(10'003));
  EXPECT_EQ(SentTo<Refusal>(10'003)->text, "the job has 10002 nodes and spares already");
}

TEST_F(CoordinatorTest, ARoundFarAheadIsRefused) {
  Open(1, 2);
  Hello hello = HelloOf(1);
  hello.round = 1'000'000'000;
  Deliver(1, hello);
  ASSERT_TRUE(SentTo<Refusal>(1));
  EXPECT_THAT(SentTo<Refusal>(1)->text, HasSubstr("claims round 1000000000"));
  hello = HelloOf(2);
  hello.attempts = 1'000'000'000;
  Deliver(2, hello);
  EXPECT_TRUE(SentTo<Refusal>(2));
}

TEST_F(CoordinatorTest, ANodeCannotClaimThatItsStopTakesForever) {
  policy_.max_stop = seconds(30);
  Open(2, 2);
  Hello hello = HelloOf(1);
  hello.stop_ms = 1'000'000'000;
  Deliver(1, hello);
  Join(2);
  for (PeerId peer : {1u, 2u}) Deliver(peer, Prepared{1, 5});
  ASSERT_EQ(phase(), JobPhase::kRunning);
  Deliver(2, Failed{1, kRank3});
  Deliver(2, Stopped{1});
  for (int i = 0; i < 95; ++i) {
    now_ += seconds(1);
    AllBeat({1, 2});
  }
  EXPECT_NE(phase(), JobPhase::kStopping);
}

TEST_F(CoordinatorTest, ABeatNamesNoMoreWorkersThanTheNodeHas) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(2);
  Deliver(1, Done{1});
  Deliver(2, Beat{1, std::vector<int>(1'000'000, 1)});
  Advance(policy_.finish_timeout);
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why, HasSubstr(": ranks 2, 3 on n2")) << "the beat counts";
}

TEST_F(CoordinatorTest, AHangAtTheEndNamesTheRanks) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(3);
  Deliver(1, Done{1});
  Deliver(3, Done{1});
  Advance(policy_.finish_timeout);
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why, HasSubstr("ranks 2, 3 on n2"));
  for (PeerId peer : {1u, 2u, 3u}) Deliver(peer, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitHang);
}

TEST_F(CoordinatorTest, AHangAtTheEndNamesTheRanksThatOthersAreSeenToWaitFor) {
  policy_.node_timeout = milliseconds(10'000'000);
  const std::string text = "rank 0 ended with exit code 0 while rank 2 waits for it in Barrier";
  Run(2);
  Deliver(1, Done{1});
  Act(AwaitedEndSeen{text});
  Advance(policy_.finish_timeout - milliseconds(1'000));
  Act(AwaitedEndSeen{text});
  Advance(milliseconds(1'000));
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why, EndsWith("(--finish-timeout): " + text));
}

TEST_F(CoordinatorTest, AnOldWaitIsNoReasonForAHangAtTheEnd) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(2);
  Deliver(1, Done{1});
  Act(AwaitedEndSeen{"rank 0 ended"});
  Advance(policy_.finish_timeout);
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why,
              HasSubstr(": ranks 2, 3 on n2; nothing visible shows whether they wait for ranks 0, "
                        "1, which ended with exit code 0"));
}

TEST_F(CoordinatorTest, AHangAtTheEndNamesOnlyTheUnfinishedRanks) {
  policy_.node_timeout = milliseconds(10'000'000);
  Run(3);
  Deliver(1, Done{1});
  Deliver(3, Beat{1, std::vector{0, 1, 7}});
  Deliver(2, Beat{1, std::vector{1}});
  EXPECT_EQ(*SentTo<Beat>(2), Beat{1}) << "the answer has no other field";
  Deliver(2, Beat{2});
  Advance(policy_.finish_timeout);
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why, HasSubstr(": rank 3 on n2, ranks 4, 5 on n3"));
}

TEST_F(CoordinatorTest, RanksFinishedInAnEarlierRoundAreForgotten) {
  policy_.node_timeout = milliseconds(10'000'000);
  policy_.restart.max_restarts = 1;
  Run(2);
  Deliver(2, Beat{1, std::vector{1}});
  Deliver(1, Failed{1, {.text = "rank 0 failed", .rank = 0}});
  for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{1});
  for (PeerId peer : {1u, 2u}) Deliver(peer, Prepared{2, 0});
  ASSERT_EQ(phase(), JobPhase::kRunning);
  Deliver(1, Done{2});
  Advance(policy_.finish_timeout);
  ASSERT_TRUE(SentTo<Stop>(2));
  EXPECT_THAT(SentTo<Stop>(2)->why, HasSubstr(": ranks 2, 3 on n2"));
}

TEST_F(CoordinatorTest, SuccessIsSentInTwoPhases) {
  Run(2);
  Deliver(1, Done{1});
  Deliver(2, Done{1});
  EXPECT_TRUE(SentTo<Finish>(1) && SentTo<Finish>(2));
  Deliver(1, FinishSeen{1});
  EXPECT_FALSE(SentTo<Verdict>(1));
  Deliver(2, FinishSeen{1});
  EXPECT_EQ(*SentTo<Verdict>(1), (Verdict{0, ""}));
  for (PeerId peer : {1u, 2u}) {
    Deliver(peer, Stopped{1});
    Act(PeerLost{peer});
  }
  EXPECT_TRUE(has_retired_);
}

TEST_F(CoordinatorTest, WithoutEnoughNodesItGivesUpAndNamesThosePresent) {
  policy_.node_timeout = milliseconds(10'000'000);
  Open(2, 2);
  Join(1);
  Advance(policy_.join_timeout);
  EXPECT_EQ(*SentTo<Verdict>(1),
            (Verdict{kExitNoRendezvous,
                     "gave up waiting for nodes: 1 of 2 nodes are here after 600.0 s (n1)"}));
}

TEST_F(CoordinatorTest, AVerdictBeforeTheFirstRoundWaitsForTheOwnNodesNextAgent) {
  Open(1, 1, CoordinatorRecord{.verdict = Verdict{kExitNoRendezvous, "gave up"}});
  EXPECT_FALSE(has_retired_);
  Join(1);
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitNoRendezvous);
  Advance(policy_.node_timeout);
  EXPECT_TRUE(has_retired_);
}

}  // namespace
}  // namespace rankrun::agent
