#include <gtest/gtest.h>

#include "agent/exit_codes.h"
#include "tests/agent/coordinator_fixture.h"

// Links that break, and coordinators that follow one another.

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::CoordinatorTest;

TEST_F(CoordinatorTest, AnAnswerLostWithItsLinkIsInTheNextHello) {
  Open(2, 2);
  Join(1);
  Join(2);
  Act(PeerLost{2});  // with "prepared"
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Return(2, 12, 0, Work::kPrepared, 1);
  EXPECT_EQ(Told<Prepare>(12)->round, 2);
}

TEST_F(CoordinatorTest, AGoLostWithItsLinkIsToldAgain) {
  Run(2);
  Act(PeerLost{2});
  Return(2, 12, 0, Work::kPrepared, 1);
  ASSERT_TRUE(Told<Go>(12));
  EXPECT_EQ(Told<Go>(12)->round, 1);
  EXPECT_EQ(Told<Go>(12)->store_port, 5);
}

TEST_F(CoordinatorTest, DoneAndStoppedAndFinishSeenCountFromAHello) {
  Run(2);
  Say(1, Done{1});
  Return(2, 12, 0, Work::kDone, 1);
  EXPECT_EQ(phase(), JobPhase::kFinishing);
  EXPECT_TRUE(Told<Finish>(12));
  Say(1, FinishSeen{1});
  Return(2, 22, 0, Work::kFinished, 1);
  EXPECT_EQ(*Told<Verdict>(22), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, AFailureLostWithItsLinkIsTheCause) {
  Run(2);
  Hello hello = HelloOf(2);
  hello.round = 1;
  hello.work = Work::kStopping;
  hello.failure = Cause{.text = "rank 3 failed", .exit_code = 9};
  Say(12, hello);
  EXPECT_EQ(Told<Stop>(1)->why, "rank 3 failed");
  Say(1, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Say(12, Stopped{1});
  EXPECT_EQ(Told<Verdict>(1)->exit_code, 9);
}

TEST_F(CoordinatorTest, AnOlderAgentOfANodeIsRefused) {
  Run(2);
  Return(2, 12, 1, Work::kNone, 0);
  Return(2, 22, 0, Work::kRunning, 1);
  EXPECT_TRUE(Told<Refusal>(22));
}

TEST_F(CoordinatorTest, ALostNodeIsNotWaitedForInTheNextRound) {
  policy_.restart.max_restarts = 1;
  Run(2, 1);
  Say(1, Failed{1, {.text = "rank 0 failed"}});
  Say(1, Stopped{1});
  Act(PeerLost{2});  // before it had stopped
  for (int i = 0; i < 11; ++i, now_ += milliseconds(1'000)) AllBeat({1});
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Pass(policy_.kill_bound);
  EXPECT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(Told<Prepare>(1)->node_count, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorStopsWhatRunsAndChargesOneRestart) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Open(2, 2, kept_);
  EXPECT_EQ(phase(), JobPhase::kStopping);
  Return(2, 12, 0, Work::kRunning, 1);
  ASSERT_TRUE(Told<Stop>(12));
  Return(1, 11, 1, Work::kNone, 0);
  Say(12, Stopped{1});
  EXPECT_EQ(Told<Prepare>(12)->round, 2);
  EXPECT_EQ(Told<Prepare>(12)->attempt, 1);
  EXPECT_EQ(kept_->history.restarts, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorHasNoBudgetOfItsOwn) {
  Run(2);
  Open(2, 2, kept_);
  Return(2, 12, 0, Work::kNone, 1);
  Return(1, 11, 1, Work::kNone, 0);
  EXPECT_EQ(Told<Verdict>(12)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, TheNextCoordinatorKnowsWhyItStops) {
  policy_.restart.max_restarts = 3;
  Run(2);
  Say(2, Close{{.text = "Ctrl-C at n2", .exit_code = 130}});
  Open(2, 2, kept_);
  Return(2, 12, 0, Work::kNone, 1);
  Return(1, 11, 1, Work::kNone, 0);
  EXPECT_EQ(Told<Verdict>(11)->exit_code, 130);
}

TEST_F(CoordinatorTest, TheNextCoordinatorChargesARestartOnce) {
  policy_.restart = {.max_restarts = 3, .first_pause = seconds(1)};
  Run(2);
  Say(2, Failed{1, {.text = "rank 3 failed"}});
  Say(2, Stopped{1});
  Say(1, Stopped{1});
  EXPECT_EQ(kept_->history.restarts, 1);
  Open(2, 2, kept_);
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Return(1, 11, 1, Work::kNone, 0);
  Return(2, 12, 0, Work::kPrepared, 2);
  EXPECT_EQ(Told<Prepare>(12)->round, 3);
  EXPECT_EQ(kept_->history.restarts, 1);
}

TEST_F(CoordinatorTest, TheNextCoordinatorFinishesWhatWasFinishing) {
  Run(2);
  Say(1, Done{1});
  Say(2, Done{1});
  Open(2, 2, kept_);
  Return(2, 12, 0, Work::kDone, 1);
  EXPECT_TRUE(Told<Finish>(12));
  Say(12, FinishSeen{1});
  Return(1, 11, 1, Work::kNone, 0);
  EXPECT_EQ(*Told<Verdict>(11), (Verdict{0, ""}));
}

TEST_F(CoordinatorTest, TheNextCoordinatorRepeatsTheVerdict) {
  Run(2);
  Say(2, Failed{1, {.text = "rank 3 failed", .exit_code = 9}});
  Say(2, Stopped{1});
  Say(1, Stopped{1});
  Open(2, 2, kept_);
  EXPECT_FALSE(has_retired_) << "its own member has not heard it";
  Return(1, 11, 1, Work::kNone, 0);
  EXPECT_EQ(Told<Verdict>(11)->exit_code, 9);
  Return(2, 12, 0, Work::kNone, 1);
  EXPECT_EQ(Told<Verdict>(12)->exit_code, 9);
}

TEST_F(CoordinatorTest, TheNextCoordinatorAwaitsTheKillBoundOfALostNode) {
  Run(2, 1);
  now_ += milliseconds(9'900);
  Say(1, Beat{1});
  Pass(milliseconds(1'100));
  Say(1, Stopped{1});
  Open(1, 2, kept_);
  Return(1, 11, 1, Work::kNone, 0);
  EXPECT_EQ(phase(), JobPhase::kGathering);
}

TEST_F(CoordinatorTest, AWorldThatBeganAnewGoesOnAfterTheOldRounds) {
  Open(2, 2);
  Join(1);
  Return(2, 12, 0, Work::kRunning, 5);
  ASSERT_TRUE(Told<Stop>(12));
  EXPECT_EQ(Told<Stop>(12)->round, 5);
  Say(12, Stopped{5});
  EXPECT_EQ(phase(), JobPhase::kGathering) << "others of that world may run";
  for (int i = 0; i < 12; ++i, now_ += seconds(1)) AllBeat({1, 12});
  EXPECT_EQ(Told<Prepare>(12)->round, 6);
}

TEST_F(CoordinatorTest, AnOldRoundsNumberDoesNotDisturbARunningOne) {
  Run(2);
  Return(3, 3, 0, Work::kNone, 7);
  Say(1, Done{1});
  Say(2, Done{1});
  EXPECT_EQ(phase(), JobPhase::kFinishing);
}

TEST_F(CoordinatorTest, ItNeverAsksToBeWokenInThePast) {
  Run(2, 1);
  for (int i = 0; i < 200; ++i) {
    Pass(milliseconds(500));
    EXPECT_GT(coordinator_->deadline(), now_);
  }
}

}  // namespace
}  // namespace rankrun::agent
