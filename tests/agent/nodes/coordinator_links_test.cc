#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "tests/agent/coordination/coordinator_fixture.h"

// Broken links, and coordinators of later incarnations.

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(CoordinatorTest, AnAnswerLostWithItsLinkIsInTheNextHello) {
  Open(2, 2);
  Join(1);
  Join(2);
  Act(PeerLost{2});  // its Prepared is lost
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Reconnect(2, 12, 0, NodeState::kPrepared, 1);
  EXPECT_EQ(SentTo<Prepare>(12)->round, 2);
}

TEST_F(CoordinatorTest, AStartRoundLostWithItsLinkIsSentAgain) {
  Run(2);
  Act(PeerLost{2});
  Reconnect(2, 12, 0, NodeState::kPrepared, 1);
  ASSERT_TRUE(SentTo<StartRound>(12));
  EXPECT_EQ(SentTo<StartRound>(12)->round, 1);
  EXPECT_EQ(SentTo<StartRound>(12)->store_port, 5);
}

TEST_F(CoordinatorTest, AHelloRepeatsDoneAndFinishSeen) {
  Run(2);
  Deliver(1, Done{1});
  Reconnect(2, 12, 0, NodeState::kDone, 1);
  EXPECT_EQ(phase(), JobPhase::kFinishing);
  EXPECT_TRUE(SentTo<Finish>(12));
  Deliver(1, FinishSeen{1});
  Reconnect(2, 22, 0, NodeState::kFinished, 1);
  EXPECT_EQ(*SentTo<Verdict>(22), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, AFailureLostWithItsLinkIsTheCause) {
  Run(2);
  Hello hello = HelloOf(2);
  hello.round = 1;
  hello.work = NodeState::kStopping;
  hello.failure = Cause{.text = "rank 3 failed", .exit_code = 9};
  Deliver(12, hello);
  EXPECT_EQ(SentTo<Stop>(1)->why, "rank 3 failed");
  Deliver(1, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Deliver(12, Stopped{1});
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, 9);
}

TEST_F(CoordinatorTest, AnOlderAgentOfANodeIsRefused) {
  Run(2);
  Reconnect(2, 12, 1, NodeState::kNone, 0);
  Reconnect(2, 22, 0, NodeState::kRunning, 1);
  EXPECT_TRUE(SentTo<Refusal>(22));
}

TEST_F(CoordinatorTest, ALostNodeIsNotWaitedForInTheNextRound) {
  policy_.restart.max_restarts = 1;
  Run(2, 1);
  Deliver(1, Failed{1, {.text = "rank 0 failed"}});
  Deliver(1, Stopped{1});
  Act(PeerLost{2});  // before it has stopped
  for (int i = 0; i < 11; ++i, now_ += milliseconds(1'000)) AllBeat({1});
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Advance(policy_.kill_bound);
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->node_count, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorStopsWhatRunsAndChargesOneRestart) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Open(2, 2, persisted_);
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Reconnect(2, 12, 0, NodeState::kRunning, 1);
  ASSERT_TRUE(SentTo<Stop>(12));
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  Deliver(12, Stopped{1});
  EXPECT_EQ(SentTo<Prepare>(12)->round, 2);
  EXPECT_EQ(SentTo<Prepare>(12)->attempt, 1);
  EXPECT_EQ(persisted_->history.restarts, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorHasNoBudgetOfItsOwn) {
  Run(2);
  Open(2, 2, persisted_);
  Reconnect(2, 12, 0, NodeState::kNone, 1);
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  EXPECT_EQ(SentTo<Verdict>(12)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, TheNextCoordinatorKnowsWhyItStops) {
  policy_.restart.max_restarts = 3;
  Run(2);
  Deliver(2, Close{{.text = "Ctrl-C at n2", .exit_code = 130}});
  Open(2, 2, persisted_);
  Reconnect(2, 12, 0, NodeState::kNone, 1);
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  EXPECT_EQ(SentTo<Verdict>(11)->exit_code, 130);
}

TEST_F(CoordinatorTest, TheNextCoordinatorChargesARestartOnce) {
  policy_.restart = {.max_restarts = 3, .first_pause = seconds(1)};
  Run(2);
  Deliver(2, Failed{1, {.text = "rank 3 failed"}});
  Deliver(2, Stopped{1});
  Deliver(1, Stopped{1});
  EXPECT_EQ(persisted_->history.restarts, 1);
  Open(2, 2, persisted_);
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  Reconnect(2, 12, 0, NodeState::kPrepared, 2);
  EXPECT_EQ(SentTo<Prepare>(12)->round, 3);
  EXPECT_EQ(persisted_->history.restarts, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorKnowsTheOutcomeForLateReports) {
  policy_.restart.max_restarts = 3;
  for (const bool is_counted : {true, false}) {
    Run(2);
    Deliver(2, Failed{1, {.text = "rank 3 failed", .rank = 3, .consumes_restart = is_counted}});
    Deliver(2, Stopped{1});
    Deliver(1, Stopped{1});
    const RoundOutcome outcome = coordinator_->outcome();
    Open(2, 2, persisted_);
    EXPECT_EQ(coordinator_->outcome(), outcome);
    EXPECT_EQ(coordinator_->outcome().rank, 3);
  }
}

TEST_F(CoordinatorTest, TheNextCoordinatorFinishesWhatWasFinishing) {
  Run(2);
  Deliver(1, Done{1});
  Deliver(2, Done{1});
  Open(2, 2, persisted_);
  Reconnect(2, 12, 0, NodeState::kDone, 1);
  EXPECT_TRUE(SentTo<Finish>(12));
  Deliver(12, FinishSeen{1});
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  EXPECT_EQ(*SentTo<Verdict>(11), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, TheNextCoordinatorRepeatsTheVerdict) {
  Run(2);
  Deliver(2, Failed{1, {.text = "rank 3 failed", .exit_code = 9}});
  Deliver(2, Stopped{1});
  Deliver(1, Stopped{1});
  Open(2, 2, persisted_);
  EXPECT_FALSE(has_retired_) << "its own member has not received the verdict";
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  EXPECT_EQ(SentTo<Verdict>(11)->exit_code, 9);
  Reconnect(2, 12, 0, NodeState::kNone, 1);
  EXPECT_EQ(SentTo<Verdict>(12)->exit_code, 9);
}

TEST_F(CoordinatorTest, TheNextCoordinatorAwaitsTheKillBoundOfALostNode) {
  Run(2, 1);
  now_ += milliseconds(9'900);
  Deliver(1, Beat{1});
  Advance(milliseconds(1'100));
  Deliver(1, Stopped{1});
  Open(1, 2, persisted_);
  Reconnect(1, 11, 1, NodeState::kNone, 0);
  EXPECT_EQ(phase(), JobPhase::kGathering);
}

TEST_F(CoordinatorTest, ANewCoordinatorContinuesAfterTheOldRounds) {
  Open(2, 2);
  Join(1);
  Reconnect(2, 12, 0, NodeState::kRunning, 5);
  ASSERT_TRUE(SentTo<Stop>(12));
  EXPECT_EQ(SentTo<Stop>(12)->round, 5);
  Deliver(12, Stopped{5});
  EXPECT_EQ(phase(), JobPhase::kGathering) << "other members of that round may run";
  for (int i = 0; i < 12; ++i, now_ += seconds(1)) AllBeat({1, 12});
  EXPECT_EQ(SentTo<Prepare>(12)->round, 6);
}

TEST_F(CoordinatorTest, AnOldRoundsNumberDoesNotDisturbARunningOne) {
  Run(2);
  Reconnect(3, 3, 0, NodeState::kNone, 7);
  Deliver(1, Done{1});
  Deliver(2, Done{1});
  EXPECT_EQ(phase(), JobPhase::kFinishing);
}

TEST_F(CoordinatorTest, ItNeverAsksToBeWokenInThePast) {
  Run(2, 1);
  for (int i = 0; i < 200; ++i) {
    Advance(milliseconds(500));
    EXPECT_GT(coordinator_->deadline(), now_);
  }
}

}  // namespace
}  // namespace rankrun::agent
