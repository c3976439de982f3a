#include "agent/coordination/round_verdict.h"

#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStopped{std::chrono::hours(1)};
constexpr uint64_t kFailedNode = 1;
const Cause kFailure{.text = "rank 3 failed", .exit_code = 9, .rank = 3};
const Cause kLostPeer{.text = "rank 0 lost its peer", .is_primary = false};
const Cause kLoss{.text = "node n2 is silent", .exit_code = 205, .consumes_restart = false};

RoundVerdict StoppedBy(const Cause& cause) {
  return {
      cause,
      {.was_started = true, .lasted = seconds(5), .stopped = kStopped, .failed_node = kFailedNode}};
}
Cause Fatal(Cause cause) {
  cause.is_fatal = true;
  return cause;
}

TEST(RoundVerdictTest, OnlyAPrimaryFailureReplacesALostPeer) {
  RoundVerdict verdict = StoppedBy(kLostPeer);
  verdict.ReplaceIfBetter({.text = "another victim", .is_primary = false});
  EXPECT_EQ(verdict.cause(), kLostPeer);
  verdict.ReplaceIfBetter(kFailure);
  EXPECT_EQ(verdict.cause(), kFailure);
  verdict.ReplaceIfBetter({.text = "a later failure"});
  EXPECT_EQ(verdict.cause(), kFailure);
}

TEST(RoundVerdictTest, NothingReplacesACauseThatEndsTheJob) {
  RoundVerdict verdict = StoppedBy(kLostPeer);
  EXPECT_TRUE(verdict.EndWith({.text = "Ctrl-C", .exit_code = 130}));
  EXPECT_FALSE(verdict.EndWith({.text = "Ctrl-C elsewhere"}));
  verdict.ReplaceIfBetter(kFailure);
  EXPECT_FALSE(verdict.PreferLoss(2, kStopped, kLoss));
  EXPECT_FALSE(verdict.RecordLoss(kLoss));
  EXPECT_EQ(verdict.EndOfJob().exit_code, 130);
  EXPECT_TRUE(verdict.EndOfJob().is_fatal);
}

TEST(RoundVerdictTest, ALossOfTheSameTimeElsewhereIsTheCauseOfAFailure) {
  RoundVerdict verdict = StoppedBy(kFailure);
  EXPECT_FALSE(verdict.PreferLoss(kFailedNode, kStopped, kLoss)) << "the failed node itself";
  EXPECT_FALSE(verdict.PreferLoss(2, kStopped + milliseconds(1'001), kLoss)) << "heard later";
  EXPECT_TRUE(verdict.PreferLoss(2, kStopped + seconds(1), kLoss));
  EXPECT_EQ(verdict.cause(), kLoss);
  EXPECT_FALSE(verdict.PreferLoss(3, kStopped, {.text = "a second loss"}));
  EXPECT_EQ(verdict.cause(), kLoss);
}

TEST(RoundVerdictTest, LossesDuringTheStopAreInTheReason) {
  RoundVerdict verdict = StoppedBy(kFailure);
  EXPECT_FALSE(verdict.RecordLoss(kFailure)) << "the cause itself";
  EXPECT_FALSE(verdict.RecordLoss(kLoss));
  EXPECT_FALSE(verdict.RecordLoss({.text = "node n3 is silent"}));
  RoundVerdict::Next next = verdict.Decide({.max_restarts = 1}, {});
  EXPECT_EQ(next.outcome.reason, "at once; node n2 is silent; node n3 is silent");
  EXPECT_EQ(next.outcome.cause, "rank 3 failed");
}

TEST(RoundVerdictTest, ALossThatEndsTheJobKeepsTheRankAndNamesTheEarlierCause) {
  RoundVerdict verdict = StoppedBy(kFailure);
  EXPECT_TRUE(verdict.RecordLoss(Fatal(kLoss)));
  EXPECT_EQ(verdict.EndOfJob().cause, "node n2 is silent; before that: rank 3 failed");
  EXPECT_EQ(verdict.EndOfJob().exit_code, 205);
  EXPECT_EQ(verdict.EndOfJob().rank, 3);
}

TEST(RoundVerdictTest, AFailureUsesUpTheBudget) {
  RoundVerdict verdict = StoppedBy(kFailure);
  RoundVerdict::Next next = verdict.Decide({.max_restarts = 1}, {});
  ASSERT_TRUE(next.history);
  EXPECT_TRUE(next.outcome.restarts && !next.outcome.is_free);
  EXPECT_EQ(next.outcome.restart_number, 1);
  next = verdict.Decide({.max_restarts = 1}, *next.history);
  EXPECT_FALSE(next.outcome.restarts);
  EXPECT_EQ(next.outcome.exit_code, 9);
  EXPECT_EQ(next.outcome.reason, "1 of 1 restarts used");
}

TEST(RoundVerdictTest, ALossUsesUpNothingButRepeatedLossesPause) {
  RestartHistory history;
  Duration pause{};
  for (int i = 0; i < 2; ++i) {
    RoundVerdict::Next next = StoppedBy(kLoss).Decide({.max_restarts = 0}, history);
    ASSERT_TRUE(next.outcome.restarts && next.outcome.is_free && next.history);
    history = *next.history;
    pause = next.pause;
  }
  EXPECT_EQ(history.restarts, 0);
  EXPECT_GT(pause, Duration::zero());
}

TEST(RoundVerdictTest, ANewcomerIsNoFailure) {
  RoundVerdict verdict =
      StoppedBy({.text = "node n4 joins", .is_primary = false, .consumes_restart = false});
  RoundVerdict::Next next = verdict.Decide({.max_restarts = 0}, {});
  EXPECT_TRUE(next.outcome.restarts && next.outcome.is_free);
  EXPECT_FALSE(next.history);
  EXPECT_EQ(next.pause, Duration::zero());
}

TEST(RoundVerdictTest, ACauseHasTheExitCodeOfAFailure) {
  RoundVerdict verdict = StoppedBy({.text = "all is well", .exit_code = 0});
  EXPECT_EQ(verdict.EndOfJob().exit_code, kExitInternalError);
}

}  // namespace
}  // namespace rankrun::agent
