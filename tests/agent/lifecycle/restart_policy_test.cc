#include "agent/lifecycle/restart_policy.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct RestartPolicyTest : testing::Test {
  RestartDecision Fail(Duration lasted) {
    RestartDecision decision = DecideRestart(policy, history, lasted);
    history = decision.next;
    return decision;
  }
  RestartPolicy policy{.max_restarts = 10};
  RestartHistory history;
};

TEST_F(RestartPolicyTest, TheFirstRestartComesAtOnce) {
  RestartDecision decision = Fail(seconds(2));
  EXPECT_TRUE(decision.restarts);
  EXPECT_EQ(decision.pause, Duration::zero());
  EXPECT_EQ(decision.reason, "at once");
  EXPECT_EQ(history, (RestartHistory{.restarts = 1, .consecutive_failures = 1}));
}

TEST_F(RestartPolicyTest, PausesDoubleUpToTheLongest) {
  std::vector<Duration> pauses;
  for (int i = 0; i < 9; ++i) pauses.push_back(Fail(milliseconds(10)).pause);
  EXPECT_EQ(pauses,
            (std::vector<Duration>{seconds(0), seconds(1), seconds(2), seconds(4), seconds(8),
                                   seconds(16), seconds(30), seconds(30), seconds(30)}));
}

TEST_F(RestartPolicyTest, AFirstPauseOfNothingStaysSo) {
  policy.first_pause = milliseconds(0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Fail(milliseconds(10)).pause, seconds(0));
}

TEST_F(RestartPolicyTest, AFirstPauseAboveTheLongestStaysAsItIs) {
  policy.first_pause = std::chrono::hours(100'000);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Fail(milliseconds(10)).pause, std::chrono::hours(i == 0 ? 0 : 100'000));
  }
}

TEST_F(RestartPolicyTest, APauseIsReportedWithItsReason) {
  Fail(seconds(1));
  EXPECT_EQ(Fail(seconds(1)).reason,
            "in 1.0 s: 2 failures in a row, each within 300.0 s of a start");
}

TEST_F(RestartPolicyTest, AHealthyAttemptBreaksTheRow) {
  for (int i = 0; i < 4; ++i) Fail(seconds(1));
  RestartDecision decision = Fail(minutes(5));
  EXPECT_EQ(decision.pause, Duration::zero());
  EXPECT_EQ(Fail(minutes(5) - milliseconds(1)).pause, seconds(1));
}

TEST_F(RestartPolicyTest, TheBudgetCountsHealthyAttemptsToo) {
  policy.max_restarts = 2;
  EXPECT_TRUE(Fail(minutes(6)).restarts);
  EXPECT_TRUE(Fail(minutes(6)).restarts);
  RestartDecision last = Fail(minutes(6));
  EXPECT_FALSE(last.restarts);
  EXPECT_EQ(last.reason, "2 of 2 restarts used");
  EXPECT_EQ(history.restarts, 2);
}

TEST_F(RestartPolicyTest, WithoutRestartsThereIsNone) {
  policy.max_restarts = 0;
  RestartDecision decision = Fail(seconds(1));
  EXPECT_FALSE(decision.restarts);
  EXPECT_EQ(decision.reason, "--max-restarts is 0");
}

TEST_F(RestartPolicyTest, AnEndlessRowDoesNotOverflow) {
  policy.max_restarts = 1'000'000;
  history = {.restarts = 5'000, .consecutive_failures = 5'000};
  EXPECT_EQ(Fail(seconds(1)).pause, seconds(30));
}

}  // namespace
}  // namespace rankrun::agent
