#include "agent/coordination/liveness_watch.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kNode = 7;

// Nodes of a job with a node timeout of 10 s; one of them is connected.
struct LivenessWatchTest : testing::Test {
  void Hello(uint64_t node = kNode) {
    watch.OnHello(node, {"10.0.0." + std::to_string(node), port}, now);
  }
  // Returns how many dials are due, and keeps the number of the last.
  size_t Dials() {
    auto dials = watch.Due(now);
    if (!dials.empty()) last = dials.back();
    return dials.size();
  }
  std::optional<NodeGone> Answer(LivenessAnswer answer) {
    return watch.OnAnswer(last.number, answer, now);
  }
  // Dials once and gets this answer.
  std::optional<NodeGone> Try(LivenessAnswer answer) {
    EXPECT_EQ(Dials(), 1U);
    return Answer(answer);
  }
  void JoinWithTrial(LivenessAnswer trial) {
    Hello();
    EXPECT_FALSE(Try(trial));
  }
  void AdvanceToDeadline() {
    ASSERT_TRUE(watch.deadline());
    now = std::max(now, *watch.deadline());
  }
  // Dials again after the pause and gets this answer.
  std::optional<NodeGone> TryAgain(LivenessAnswer answer) {
    for (int i = 0; i < 1'000; ++i) {  // deadlines may be those of checks of all nodes
      AdvanceToDeadline();
      if (Dials() == 1) return Answer(answer);
    }
    ADD_FAILURE() << "no dial";
    return std::nullopt;
  }

  TimePoint now{std::chrono::hours(1)};
  uint16_t port = 4711;
  LivenessWatch watch{seconds(10)};
  LivenessDial last{};
};

TEST_F(LivenessWatchTest, ANodeIsDialledOnceWhenItJoins) {
  EXPECT_FALSE(watch.deadline());
  Hello();
  EXPECT_EQ(*watch.deadline(), now);
  ASSERT_EQ(Dials(), 1U);
  EXPECT_EQ(last.target, (Endpoint{"10.0.0.7", 4711}));
  EXPECT_EQ(Dials(), 0U);
  Answer(LivenessAnswer::kConnected);
  EXPECT_EQ(Dials(), 0U);
  Hello();
  EXPECT_EQ(Dials(), 0U) << "the port is known to answer";
  port = 4712;
  Hello();
  EXPECT_EQ(Dials(), 1U) << "another port";
}

TEST_F(LivenessWatchTest, TwoRefusalsAfterABreakAreProof) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(Try(LivenessAnswer::kRefused));
  EXPECT_EQ(Dials(), 0U);
  auto gone = TryAgain(LivenessAnswer::kRefused);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->node, kNode);
  EXPECT_EQ(gone->port, 4711);
  EXPECT_FALSE(watch.deadline()) << "it is forgotten";
}

TEST_F(LivenessWatchTest, ANodeWhoseTrialIsRefusedIsForgottenUntilItsNextHello) {
  JoinWithTrial(LivenessAnswer::kRefused);
  EXPECT_FALSE(watch.deadline());
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(watch.deadline());
  JoinWithTrial(LivenessAnswer::kConnected);
}

TEST_F(LivenessWatchTest, ATrialWithoutAnAnswerIsRepeatedAfterGrowingPauses) {
  JoinWithTrial(LivenessAnswer::kNone);
  const TimePoint begin = now;
  int trials = 0;
  for (; now < begin + seconds(1'000); ++trials) {
    EXPECT_FALSE(TryAgain(LivenessAnswer::kNone));
    watch.OnMessage(kNode, now);
  }
  EXPECT_GT(trials, 6);
  EXPECT_LT(trials, 14);
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(TryAgain(LivenessAnswer::kConnected));
  EXPECT_FALSE(TryAgain(LivenessAnswer::kRefused));
  EXPECT_TRUE(TryAgain(LivenessAnswer::kRefused));
}

TEST_F(LivenessWatchTest, ATrialThatHasToWaitIsNotLost) {
  for (uint64_t node = 1; node <= 65; ++node) Hello(node);
  const auto dials = watch.Due(now);
  ASSERT_EQ(dials.size(), 64U);
  now += seconds(3);
  EXPECT_EQ(Dials(), 0U) << "all are silent";
  watch.OnMessage(65, now);
  watch.OnAnswer(dials[0].number, LivenessAnswer::kConnected, now);
  EXPECT_EQ(Dials(), 1U);
  EXPECT_EQ(last.node, 65U);
}

TEST_F(LivenessWatchTest, ATrialThatEndsAfterTheBreakIsNoProof) {
  Hello();
  ASSERT_EQ(Dials(), 1U);
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(Answer(LivenessAnswer::kRefused));
  EXPECT_EQ(Dials(), 0U);
}

TEST_F(LivenessWatchTest, ADialThatBeganBeforeTheBreakIsNoProof) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  ASSERT_EQ(Dials(), 1U);
  Hello();
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(Answer(LivenessAnswer::kRefused));
  EXPECT_FALSE(TryAgain(LivenessAnswer::kRefused));
  EXPECT_TRUE(TryAgain(LivenessAnswer::kRefused));
}

TEST_F(LivenessWatchTest, ANodeThatAnswersIsDialledAgainAfterGrowingPauses) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  TimePoint begin = now;
  int dials = 0;
  EXPECT_FALSE(Try(LivenessAnswer::kConnected));
  for (; now < begin + milliseconds(900); ++dials) {
    EXPECT_FALSE(TryAgain(LivenessAnswer::kConnected));
  }
  EXPECT_GT(dials, 6);
  EXPECT_LT(dials, 12);
  EXPECT_FALSE(TryAgain(LivenessAnswer::kRefused));
  EXPECT_TRUE(TryAgain(LivenessAnswer::kRefused));
}

TEST_F(LivenessWatchTest, AnUnansweredDialBetweenTwoRefusalsMeansNoProof) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  EXPECT_FALSE(Try(LivenessAnswer::kRefused));
  EXPECT_FALSE(TryAgain(LivenessAnswer::kNone));
  EXPECT_FALSE(TryAgain(LivenessAnswer::kRefused));
  EXPECT_TRUE(TryAgain(LivenessAnswer::kRefused));
}

TEST_F(LivenessWatchTest, ANodeThatConnectsAgainIsNotDialled) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  Hello();
  EXPECT_EQ(Dials(), 0U);
}

TEST_F(LivenessWatchTest, ASilentNodeIsDialledUntilItIsHeard) {
  JoinWithTrial(LivenessAnswer::kConnected);
  for (int i = 0; i < 2; ++i) {
    now += seconds(1);
    EXPECT_EQ(Dials(), 0U);
  }
  now += seconds(1);
  EXPECT_FALSE(Try(LivenessAnswer::kRefused));
  watch.OnMessage(kNode, now);
  now += milliseconds(10);
  EXPECT_EQ(Dials(), 0U);
  for (int i = 0; i < 3; ++i, now += seconds(1)) EXPECT_EQ(Dials(), 0U);
  EXPECT_FALSE(Try(LivenessAnswer::kRefused));
  EXPECT_TRUE(TryAgain(LivenessAnswer::kRefused));
}

TEST_F(LivenessWatchTest, AForgottenNodeIsNotDialled) {
  JoinWithTrial(LivenessAnswer::kConnected);
  watch.OnBroken(kNode, now);
  ASSERT_EQ(Dials(), 1U);
  watch.Forget(kNode);
  EXPECT_FALSE(Answer(LivenessAnswer::kRefused));
  EXPECT_FALSE(watch.deadline());
  watch.OnBroken(kNode, now);
  watch.OnMessage(kNode, now);
  EXPECT_EQ(Dials(), 0U);
}

TEST_F(LivenessWatchTest, DialsOfManyNodesAreBounded) {
  for (uint64_t node = 1; node <= 1'000; ++node) Hello(node);
  EXPECT_EQ(Dials(), 64U);
  EXPECT_EQ(Dials(), 0U);
  EXPECT_GT(*watch.deadline(), now);
  Answer(LivenessAnswer::kConnected);
  EXPECT_EQ(*watch.deadline(), now);
  EXPECT_EQ(Dials(), 1U);
}

}  // namespace
}  // namespace rankrun::agent
