#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "tests/agent/coordination/coordinator_fixture.h"

// Nodes that are connected but stuck or too slow.

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const StuckProcess kStuck{.local_rank = 1, .what = "pid 71 (python3), state D in nfs_wait"};
constexpr const char* kStuckText =
    "node n2 counts as lost: rank 3, pid 71 (python3), state D in nfs_wait, does not die of "
    "SIGKILL";

struct CoordinatorLossTest : CoordinatorTest {
  // Node 1 has failed and stopped; node 2 has not.
  void StopBut2(int nodes) {
    policy_.restart.max_restarts = 1;
    Run(nodes, 1);
    Deliver(1, Failed{1, {.text = "rank 0 failed", .exit_code = 9}});
    Deliver(1, Stopped{1});
    ASSERT_EQ(phase(), JobPhase::kStopping);
  }
};

TEST_F(CoordinatorLossTest, AStuckNodeIsNotWaitedForAndJoinsAgainOnceTheProcessIsGone) {
  StopBut2(2);
  Deliver(2, Stuck{1, kStuck});
  ASSERT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->node_count, 1);
  EXPECT_FALSE(SentTo<Prepare>(2)->round == 2);
  ASSERT_TRUE(SentTo<NodeLost>(1) && SentTo<NodeLost>(2));
  EXPECT_EQ(SentTo<NodeLost>(1)->text, kStuckText);
  EXPECT_EQ(coordinator_->outcome().reason, std::string("at once; ") + kStuckText);
  Deliver(1, Prepared{2, 5});
  EXPECT_FALSE(SentTo<Stop>(1));
  Deliver(2, Stopped{1});
  ASSERT_TRUE(SentTo<Stop>(1));
  Deliver(1, Stopped{2});
  EXPECT_EQ(SentTo<Prepare>(2)->node_count, 2);
}

TEST_F(CoordinatorLossTest, AHelloReportsAStuckProcess) {
  StopBut2(2);
  Act(PeerLost{2});
  Hello hello = HelloOf(2);
  hello.round = 1;
  hello.work = NodeState::kStopping;
  hello.stuck = kStuck;
  Deliver(12, hello);
  ASSERT_EQ(phase(), JobPhase::kPreparing);
  Deliver(22, hello);
  EXPECT_EQ(phase(), JobPhase::kPreparing) << "a node that is not in the round any more";
}

TEST_F(CoordinatorLossTest, AStuckNodeEndsTheJobIfSoConfigured) {
  policy_.on_lost_node = LostNode::kStop;
  StopBut2(2);
  Deliver(2, Stuck{1, kStuck});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitTooFewNodes);
  EXPECT_EQ(SentTo<Verdict>(1)->text, std::string(kStuckText) + "; before that: rank 0 failed");
}

// Workers that exit with 1 without a word have noticed the loss first.
TEST_F(CoordinatorLossTest, ANodeThatIsSilentSinceAFailureElsewhereIsItsCause) {
  policy_.restart.max_restarts = 0;
  Run(3, 1);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1"}});
  Deliver(1, Stopped{1});
  for (int i = 0; i < 4; ++i) {
    Advance(policy_.node_timeout / 4);
    AllBeat({1, 2});
    Deliver(2, Stopped{1});
  }
  Advance(policy_.node_timeout / 4);
  EXPECT_THAT(coordinator_->outcome().cause, HasSubstr("node n3 has been silent"));
  EXPECT_TRUE(coordinator_->outcome().restarts && coordinator_->outcome().is_free);
}

TEST_F(CoordinatorLossTest, ANodeThatIsLostLaterIsNotTheCause) {
  policy_.restart.max_restarts = 0;
  Run(3, 1);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1"}});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  Advance(seconds(2));
  AllBeat({1, 2, 3});
  for (int i = 0; i < 5; ++i) {
    Advance(policy_.node_timeout / 4);
    AllBeat({1, 2});
  }
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->text, "rank 0: exit code 1");
}

// Beats are rare at a long node timeout, so that it was last heard before the failure.
TEST_F(CoordinatorLossTest, ANodeWhoseConnectionBreaksLaterIsNotTheCause) {
  policy_.restart.max_restarts = 0;
  Run(3, 1);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1"}});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  Advance(seconds(2));
  Act(PeerLost{3});
  Act(NodeGone{3, 4711});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->text, "rank 0: exit code 1");
}

constexpr const char* kGoneText =
    "node n3 is lost: its rankrun was killed (port 4711 refuses connections)";

TEST_F(CoordinatorLossTest, AGoneNodeIsLostAtOnceAndItsWorkersGetTimeToDie) {
  policy_.restart.max_restarts = 0;
  Run(3, 1);
  Act(PeerLost{3});
  EXPECT_EQ(phase(), JobPhase::kRunning) << "a broken link proves nothing";
  Act(NodeGone{3, 4711});
  ASSERT_TRUE(SentTo<Stop>(1) && SentTo<NodeLost>(1));
  EXPECT_EQ(SentTo<Stop>(1)->why, kGoneText);
  EXPECT_EQ(SentTo<NodeLost>(1)->text, kGoneText);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1"}});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  EXPECT_TRUE(coordinator_->outcome().restarts && coordinator_->outcome().is_free);
  EXPECT_EQ(phase(), JobPhase::kGathering);
  EXPECT_EQ(coordinator_->deadline(), now_ + policy_.gone_bound);
  Advance(policy_.gone_bound);
  ASSERT_EQ(phase(), JobPhase::kPreparing);
  EXPECT_EQ(SentTo<Prepare>(1)->node_count, 2);
}

TEST_F(CoordinatorLossTest, AGoneNodeIsTheCauseOfAFailureElsewhereThatCameFirst) {
  policy_.restart.max_restarts = 0;
  Run(3, 1);
  Deliver(1, Failed{1, {.text = "rank 0: exit code 1"}});
  Act(PeerLost{3});
  Deliver(1, Stopped{1});
  Deliver(2, Stopped{1});
  Act(NodeGone{3, 4711});
  EXPECT_EQ(coordinator_->outcome().cause, kGoneText);
  EXPECT_TRUE(coordinator_->outcome().restarts && coordinator_->outcome().is_free);
  EXPECT_EQ(SentTo<NodeLost>(1)->text, kGoneText);
}

// The store of the round is there.
TEST_F(CoordinatorLossTest, ALostStoreIsTheCauseOfLaterFailuresWithoutAnother) {
  policy_.restart.max_restarts = 0;
  for (const bool is_primary : {false, true}) {
    Open(1, 3);
    for (uint64_t node : {3U, 1U, 2U}) Join(node);
    for (uint64_t node : {3U, 1U, 2U}) Deliver(node, Prepared{1, 5});
    ASSERT_EQ(phase(), JobPhase::kRunning);
    Deliver(3, Done{1});
    Act(NodeGone{3, 4711});
    EXPECT_EQ(phase(), JobPhase::kRunning) << "the others may need no store any more";
    Deliver(1, Failed{1, {.text = "rank 2: exit code 1", .is_primary = is_primary}});
    Deliver(1, Stopped{1});
    Deliver(2, Stopped{1});
    EXPECT_EQ(coordinator_->outcome().cause, is_primary ? "rank 2: exit code 1" : kGoneText);
    EXPECT_EQ(coordinator_->outcome().is_free, !is_primary);
    if (!is_primary) {
      EXPECT_EQ(SentTo<NodeLost>(1)->text, kGoneText);
    }
  }
}

TEST_F(CoordinatorLossTest, AGoneNodeMayBeTheEnd) {
  policy_.on_lost_node = LostNode::kStop;
  Run(2, 1);
  Act(NodeGone{2, 4711});
  EXPECT_FALSE(SentTo<NodeLost>(1)) << "the job does not go on";
  Deliver(1, Stopped{1});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitTooFewNodes);
}

TEST_F(CoordinatorLossTest, AGoneNodeThatIsNotInTheJobIsNothing) {
  Run(2);
  Act(NodeGone{9, 4711});
  EXPECT_EQ(phase(), JobPhase::kRunning);
  EXPECT_EQ(coordinator_->Find(9), nullptr);
  EXPECT_NE(coordinator_->Find(2), nullptr);
}

TEST_F(CoordinatorLossTest, ASilentNodeIsAnnouncedAsLost) {
  Run(3, 1);
  for (int i = 0; i < 5; ++i) {
    Advance(policy_.node_timeout / 4);
    AllBeat({1, 2});
  }
  ASSERT_TRUE(SentTo<NodeLost>(2));
  EXPECT_THAT(SentTo<NodeLost>(2)->text, HasSubstr("node n3 has been silent"));
}

TEST_F(CoordinatorLossTest, AnAgentThatDiedIsTheCauseOfAFailureElsewhereButNotOfOneOfItsOwn) {
  for (PeerId failed : {PeerId{1}, PeerId{2}}) {
    policy_.restart.max_restarts = 1;
    Run(2);
    Deliver(failed, Failed{1, {.text = "a worker: exit code 1"}});
    Deliver(1, Stopped{1});
    Act(PeerLost{2});
    Reconnect(2, 12, 2, NodeState::kNone, 0);
    EXPECT_EQ(coordinator_->outcome().cause,
              failed == 1 ? "the agent of node n2 died" : "a worker: exit code 1");
  }
}

TEST_F(CoordinatorLossTest, AStuckNodeDoesNotCountForMin) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Deliver(1, Failed{1, {.text = "rank 0 failed"}});
  Deliver(1, Stopped{1});
  Deliver(2, Stuck{1, kStuck});
  EXPECT_EQ(phase(), JobPhase::kGathering);
  Deliver(2, Stopped{1});
  EXPECT_EQ(phase(), JobPhase::kPreparing);
}

TEST_F(CoordinatorLossTest, ANodeThatBeatsButDoesNotStopIsGivenUp) {
  StopBut2(2);
  for (int i = 0; i < 62; ++i, now_ += seconds(1)) AllBeat({1, 2});
  ASSERT_TRUE(SentTo<Refusal>(2));
  EXPECT_THAT(SentTo<Refusal>(2)->text,
              HasSubstr("node n2 is given up: it is alive, but has not stopped"));
  EXPECT_EQ(phase(), JobPhase::kGathering) << "its lease has not ended";
  Reconnect(2, 12, 0, NodeState::kStopping, 1);
  EXPECT_TRUE(SentTo<Refusal>(12));
  Reconnect(2, 22, 1, NodeState::kNone, 0);
  EXPECT_FALSE(SentTo<Refusal>(22)) << "the next incarnation";
}

}  // namespace
}  // namespace rankrun::agent
