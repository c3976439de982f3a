#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "tests/agent/coordination/coordinator_fixture.h"

// A node that fails again and again changes places with a spare.

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

struct CoordinatorReplaceTest : CoordinatorTest {
  CoordinatorReplaceTest() { policy_.restart.max_restarts = 100; }

  // Starts a round of nodes 1 to `nodes`, beside which `spares` nodes wait.
  void RunWithSpares(int nodes, int spares) {
    Run(nodes);
    for (int i = 1; i <= spares; ++i) Join(static_cast<uint64_t>(nodes + i));
  }

  // Stops the round for a failure on a node, and begins the next one.
  void FailOn(uint64_t node, bool is_primary = true) {
    const int rank = persisted_->assignments[RankOf(node)].first_rank;
    Deliver(node, Failed{persisted_->round,
                         {.text = "rank " + std::to_string(rank) + " failed",
                          .exit_code = 9,
                          .rank = rank,
                          .is_primary = is_primary}});
    StartAgain();
  }
  void StartAgain() {
    for (uint64_t id : Nodes()) Deliver(id, Stopped{persisted_->round});
    if (phase() == JobPhase::kPausing) Act(EndPause{});
    Prepare();
  }
  void Prepare() {
    for (uint64_t id : Nodes()) Deliver(id, Prepared{persisted_->round, 5});
    ASSERT_EQ(phase(), JobPhase::kRunning);
  }

  size_t RankOf(uint64_t node) const {
    const auto nodes = Nodes();
    return static_cast<size_t>(std::ranges::find(nodes, node) - nodes.begin());
  }
  // Returns the nodes of the round in the order of their node ranks.
  std::vector<uint64_t> Nodes() const {
    std::vector<uint64_t> nodes;
    for (const NodeAssignment& assignment : persisted_->assignments)
      nodes.push_back(assignment.node);
    return nodes;
  }
  std::vector<events::NodeReplaced> Replaced() const {
    std::vector<events::NodeReplaced> replaced;
    for (const Announcement& made : announced_) {
      if (const auto* one = std::get_if<events::NodeReplaced>(&made.decision))
        replaced.push_back(*one);
    }
    return replaced;
  }
};

TEST_F(CoordinatorReplaceTest, ATimeOutMayBeAnotherNodesFault) {
  RunWithSpares(3, 1);
  for (int i = 0; i < 2; ++i) {
    Deliver(2, Failed{persisted_->round,
                      {.text = "rank 1 timed out", .rank = 1, .may_be_victim = true}});
    StartAgain();
  }
  EXPECT_THAT(Nodes(), ElementsAre(1, 2, 3));
}

TEST_F(CoordinatorReplaceTest, ANodeChangesPlacesAfterItsSecondFailureInARow) {
  RunWithSpares(3, 1);
  FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 2, 3));
  EXPECT_THAT(coordinator_->outcome().reason, Not(HasSubstr("changes places")));
  FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 4, 3)) << "at the same node rank";
  ASSERT_EQ(Replaced().size(), 1U);
  EXPECT_EQ(Replaced()[0].node, "n2");
  EXPECT_EQ(Replaced()[0].spare, "n4");
  EXPECT_EQ(Replaced()[0].failures, 2);
  EXPECT_THAT(coordinator_->outcome().reason,
              EndsWith("; node n2 changes places with the spare n4"));
  EXPECT_EQ(SentTo<Waiting>(2)->text,
            "the job has its 3 nodes; this one is a spare: replaced after 2 failures in a row");
}

TEST_F(CoordinatorReplaceTest, TheNumberOfFailuresIsASetting) {
  policy_.replace_after = 1;
  RunWithSpares(2, 1);
  FailOn(1);
  EXPECT_THAT(Nodes(), ElementsAre(3, 2)) << "the node of the coordinator, too";
  EXPECT_THAT(SentTo<Waiting>(1)->text, EndsWith("replaced after 1 failure"));
}

TEST_F(CoordinatorReplaceTest, ZeroKeepsEachNode) {
  policy_.replace_after = 0;
  RunWithSpares(2, 1);
  for (int i = 0; i < 5; ++i) FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
  EXPECT_TRUE(Replaced().empty());
}

TEST_F(CoordinatorReplaceTest, AFailureOnAnotherNodeEndsTheRow) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 3; ++i) {
    FailOn(1);
    FailOn(2);
  }
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
}

TEST_F(CoordinatorReplaceTest, TheLengthOfAnAttemptDoesNotMatter) {
  RunWithSpares(2, 1);
  FailOn(2);
  policy_.node_timeout = std::chrono::milliseconds(1'000'000'000);
  for (int i = 0; i < 100; ++i) {
    now_ += seconds(9);
    AllBeat({1, 2, 3});
  }
  FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 3));
}

TEST_F(CoordinatorReplaceTest, WithoutASpareNothingChangesUntilOneJoins) {
  RunWithSpares(2, 0);
  for (int i = 0; i < 3; ++i) FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
  EXPECT_TRUE(Replaced().empty());
  EXPECT_THAT(coordinator_->outcome().reason, Not(HasSubstr("changes places")));
  Join(3);
  FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 3));
  EXPECT_THAT(SentTo<Waiting>(2)->text, EndsWith("replaced after 4 failures in a row"));
}

// Where the program fails on one rank, whatever the node, spares do not change places for ever.
TEST_F(CoordinatorReplaceTest, AReplacedNodeReplacesNoOther) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 2; ++i) FailOn(2);
  for (int i = 0; i < 5; ++i) FailOn(3);
  EXPECT_THAT(Nodes(), ElementsAre(1, 3));
  EXPECT_EQ(Replaced().size(), 1U);
}

TEST_F(CoordinatorReplaceTest, ALostNodesPlaceGoesToTheSpareThatWasNotReplaced) {
  RunWithSpares(2, 2);
  for (int i = 0; i < 2; ++i) FailOn(2);
  ASSERT_THAT(Nodes(), ElementsAre(1, 3));
  Deliver(3, Leave{"it got SIGTERM"});
  Deliver(3, Stopped{persisted_->round});
  Act(PeerLost{3});
  Deliver(1, Stopped{persisted_->round});
  EXPECT_THAT(Nodes(), ElementsAre(1, 4)) << "although node 2 joined first";
}

TEST_F(CoordinatorReplaceTest, TheJobDoesNotShrinkForAReplacedNode) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 2; ++i) FailOn(2);
  Deliver(3, Leave{"it got SIGTERM"});
  Deliver(3, Stopped{persisted_->round});
  Act(PeerLost{3});
  Deliver(1, Stopped{persisted_->round});
  EXPECT_THAT(Nodes(), ElementsAre(1, 2)) << "there is no other";
}

TEST_F(CoordinatorReplaceTest, ALostSpareTakesNoPlace) {
  RunWithSpares(2, 1);
  FailOn(2);
  Deliver(2, Failed{2, {.text = "rank 2 failed", .rank = 2}});
  for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{2});
  ASSERT_EQ(phase(), JobPhase::kPausing);
  Act(PeerLost{3});
  Act(EndPause{});
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
}

TEST_F(CoordinatorReplaceTest, ASpareFillsTheJobFirst) {
  Run(3, 2);
  Join(4);
  FailOn(2);
  Deliver(2, Failed{2, {.text = "rank 2 failed", .rank = 2}});
  Deliver(3, Leave{"it got SIGTERM"});
  for (PeerId peer : {1u, 2u, 3u}) Deliver(peer, Stopped{2});
  EXPECT_TRUE(Replaced().empty()) << "the place of node 3 is free";
  Act(PeerLost{3});
  Act(EndPause{});
  EXPECT_THAT(Nodes(), ElementsAre(1, 2, 4));
}

TEST_F(CoordinatorReplaceTest, AnUncertainCauseCountsForNoNode) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 4; ++i) FailOn(2, false);
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
  FailOn(2);
  FailOn(1, false);
  FailOn(2);
  EXPECT_THAT(Nodes(), ElementsAre(1, 3)) << "it does not end a row either";
}

TEST_F(CoordinatorReplaceTest, TheReporterOfAHangWithoutARankIsNotAtFault) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 4; ++i) {
    Deliver(2, Failed{persisted_->round, {.text = "the workers hang", .exit_code = kExitHang}});
    StartAgain();
  }
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
}

TEST_F(CoordinatorReplaceTest, ANodeThatCannotPrepareHasFailed) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 2; ++i) {
    Deliver(1, Failed{persisted_->round, {.text = "rank 0 failed", .rank = 0}});
    for (uint64_t id : Nodes()) Deliver(id, Stopped{persisted_->round});
    if (phase() == JobPhase::kPausing) Act(EndPause{});
    Deliver(2, Failed{persisted_->round, {.text = "no port for the store"}});
    if (phase() == JobPhase::kPausing) Act(EndPause{});
    Deliver(2, Failed{persisted_->round, {.text = "no port for the store"}});
    if (phase() == JobPhase::kPausing) Act(EndPause{});
    Prepare();
  }
  EXPECT_THAT(Nodes(), ElementsAre(1, 3));
}

TEST_F(CoordinatorReplaceTest, TheDeathsOfAnAgentCountForItsNode) {
  RunWithSpares(2, 1);
  for (int incarnation = 1; incarnation <= 2; ++incarnation) {
    Reconnect(2, 2, incarnation, NodeState::kNone, 0);
    StartAgain();
  }
  EXPECT_THAT(Nodes(), ElementsAre(1, 3));
}

TEST_F(CoordinatorReplaceTest, TheNodeWithTheStoresPortStays) {
  policy_.keeps_own_node = true;
  RunWithSpares(2, 1);
  for (int i = 0; i < 4; ++i) FailOn(1);
  EXPECT_THAT(Nodes(), ElementsAre(1, 2));
  EXPECT_THAT(coordinator_->outcome().reason,
              EndsWith("; node n1 keeps its place: it has the port of the store"));
}

TEST_F(CoordinatorReplaceTest, TheNextCoordinatorKnowsTheFailuresAndTheReplacedNodes) {
  RunWithSpares(2, 2);
  for (int i = 0; i < 2; ++i) FailOn(2);
  FailOn(3);
  ASSERT_THAT(Nodes(), ElementsAre(1, 3));
  Open(2, 2, persisted_);
  for (uint64_t node : {1u, 3u}) Reconnect(node, node, node == 1 ? 1 : 0, NodeState::kNone, 3);
  for (uint64_t node : {2u, 4u}) Join(node);
  if (phase() == JobPhase::kPausing) Act(EndPause{});
  Prepare();
  ASSERT_THAT(Nodes(), ElementsAre(1, 3));
  FailOn(3);
  EXPECT_THAT(Nodes(), ElementsAre(1, 3)) << "its agent's death was on node 1";
  FailOn(3);
  EXPECT_THAT(Nodes(), ElementsAre(1, 4)) << "node 2 was replaced itself";
}

// The first failure that is known can be a victim's. The merged report shows the cause.
TEST_F(CoordinatorReplaceTest, TheNodeThatTheReportNamesCounts) {
  RunWithSpares(3, 1);
  FailOn(1);
  Act(CauseFound{0, "n2"});
  Act(CauseFound{0, "n2"});
  Deliver(3, Failed{persisted_->round, {.text = "rank 4 failed", .rank = 4}});
  for (PeerId peer : {1u, 2u, 3u}) Deliver(peer, Stopped{persisted_->round});
  ASSERT_EQ(phase(), JobPhase::kPausing);
  EXPECT_EQ(FailuresText(coordinator_->outcome().earlier_failures), "");
  ASSERT_EQ(coordinator_->outcome().earlier_failures.size(), 1U);
  EXPECT_EQ(coordinator_->outcome().earlier_failures[0].name, "n2");
  Act(CauseFound{1, "n2"});
  Act(EndPause{});
  EXPECT_THAT(Nodes(), ElementsAre(1, 4, 3));
}

TEST_F(CoordinatorReplaceTest, AReportOnAnEarlierAttemptChangesNothing) {
  RunWithSpares(2, 1);
  FailOn(2);
  FailOn(1);
  Act(CauseFound{0, "n1"});
  FailOn(1);
  EXPECT_THAT(Nodes(), ElementsAre(3, 2));
}

TEST_F(CoordinatorReplaceTest, ANameOfSeveralNodesIsNoNodes) {
  Hello twin = HelloOf(2);
  RunWithSpares(2, 1);
  twin.node = 4;
  Deliver(4, twin);
  for (int attempt = 0; attempt < 4; ++attempt) {
    FailOn(1);
    Act(CauseFound{attempt, "n2"});
  }
  EXPECT_TRUE(Replaced().empty());
}

TEST_F(CoordinatorReplaceTest, TheOutcomeHasTheNodesOfAllCauses) {
  RunWithSpares(2, 1);
  for (int i = 0; i < 2; ++i) FailOn(2);
  EXPECT_EQ(coordinator_->outcome().cause_node, "n2");
  EXPECT_EQ(FailuresText(coordinator_->outcome().earlier_failures), "");
  ASSERT_EQ(coordinator_->outcome().earlier_failures.size(), 1U);
  FailOn(3);
  EXPECT_EQ(coordinator_->outcome().cause_node, "n3");
  EXPECT_EQ(FailuresText(coordinator_->outcome().earlier_failures), "n2 (attempts 0-1)");
}

}  // namespace
}  // namespace rankrun::agent
