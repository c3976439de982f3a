#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "agent/report/event.h"
#include "tests/agent/coordination/coordinator_fixture.h"

// Decisions of the coordinator, as events.

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct CoordinatorDecisionsTest : CoordinatorTest {
  // Returns the kinds of the events since the last call.
  std::vector<std::string> Kinds() {
    std::vector<std::string> kinds;
    for (; seen_ < announced_.size(); ++seen_) {
      kinds.emplace_back(events::KindOf(events::PayloadOf(announced_[seen_].decision)));
    }
    return kinds;
  }
  template <typename T>
  const T& Last() {
    for (size_t i = announced_.size(); i-- > 0;) {
      if (const auto* found = std::get_if<T>(&announced_[i].decision)) return *found;
    }
    ADD_FAILURE() << "no such event";
    static const T kNone{};
    return kNone;
  }

 private:
  size_t seen_ = 0;
};

TEST_F(CoordinatorDecisionsTest, ASuccessHasItsNodesItsRoundAndItsVerdict) {
  Run(2);
  for (PeerId peer : {1u, 2u}) Deliver(peer, Done{1});
  for (PeerId peer : {1u, 2u}) Deliver(peer, FinishSeen{1});
  EXPECT_THAT(Kinds(), ElementsAre("node_joined", "node_joined", "round_formed", "verdict"));
  EXPECT_EQ(Last<events::NodeJoined>().node, "n2");
  EXPECT_EQ(Last<events::NodeJoined>().workers, 2);
  const auto& formed = Last<events::RoundFormed>();
  EXPECT_EQ(formed.round, 1);
  EXPECT_EQ(formed.world_size, 4);
  EXPECT_THAT(formed.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(announced_[2].attempt, 0);
  EXPECT_EQ(Last<events::VerdictGiven>().exit_code, 0);
}

TEST_F(CoordinatorDecisionsTest, AFailureNamesItsNodeAndRankAndTheRestart) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Kinds();
  Deliver(2, Failed{1, {.text = "rank 3 failed", .exit_code = 9, .rank = 3}});
  EXPECT_THAT(Kinds(), ElementsAre("round_stopping"));
  EXPECT_EQ(Last<events::RoundStopping>().node, "n2");
  EXPECT_EQ(Last<events::RoundStopping>().rank, 3);
  EXPECT_EQ(announced_.back().attempt, 0);
  for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{1});
  EXPECT_THAT(Kinds(), ElementsAre("restart_decided", "round_formed"));
  const auto& restart = Last<events::RestartDecided>();
  EXPECT_EQ(restart.round, 1);
  EXPECT_EQ(restart.number, 1);
  EXPECT_FALSE(restart.is_free);
  EXPECT_EQ(restart.why, "rank 3 failed");
  EXPECT_EQ(announced_.back().attempt, 1);
}

TEST_F(CoordinatorDecisionsTest, ASilentNodeIsDroppedAndItsRestartIsFree) {
  Run(2, 1);
  Kinds();
  now_ += policy_.node_timeout / 2;
  AllBeat({1});
  Advance(policy_.node_timeout / 2);
  EXPECT_THAT(Kinds(), ElementsAre("node_dropped", "round_stopping"));
  EXPECT_EQ(Last<events::NodeDropped>().node, "n2");
  EXPECT_EQ(Last<events::RoundStopping>().node, "n2");
  EXPECT_EQ(Last<events::RoundStopping>().why, Last<events::NodeDropped>().why);
  Deliver(1, Stopped{1});
  EXPECT_THAT(Kinds(), ElementsAre("restart_decided"));
  EXPECT_TRUE(Last<events::RestartDecided>().is_free);
  EXPECT_EQ(Last<events::RestartDecided>().number, 0);
}

TEST_F(CoordinatorDecisionsTest, AStuckNodeIsDroppedOnce) {
  policy_.restart.max_restarts = 1;
  Run(2, 1);
  Deliver(1, Failed{1, {.text = "rank 0 failed"}});
  Kinds();
  const StuckProcess stuck{.local_rank = 1, .what = "pid 71"};
  Deliver(2, Stuck{1, stuck});
  Hello hello = HelloOf(2);
  hello.round = 1;
  hello.work = NodeState::kStopping;
  hello.stuck = stuck;
  Deliver(12, hello);
  EXPECT_THAT(Kinds(), ElementsAre("node_dropped"));
}

TEST_F(CoordinatorDecisionsTest, ALeaveIsAnnouncedOnceAlthoughItIsRepeated) {
  Run(3, 2);
  Kinds();
  Deliver(3, Leave{"it got SIGTERM"});
  Reconnect(3, 13, 0, NodeState::kStopping, 1);
  Deliver(13, Leave{"it got SIGTERM"});
  EXPECT_THAT(Kinds(), ElementsAre("node_dropped", "round_stopping"));
  EXPECT_EQ(Last<events::NodeDropped>().why, "node n3 leaves: it got SIGTERM");
}

TEST_F(CoordinatorDecisionsTest, ARefusalIsAnEventWithItsReason) {
  Open(1, 2);
  Hello hello = HelloOf(7);
  hello.max_nodes = 5;
  Deliver(7, hello);
  EXPECT_THAT(Kinds(), ElementsAre("node_refused"));
  EXPECT_EQ(Last<events::NodeRefused>().node, "n7");
  EXPECT_EQ(Last<events::NodeRefused>().why, SentTo<Refusal>(7)->text);
}

TEST_F(CoordinatorDecisionsTest, AReconnectIsNoJoinButTheNextIncarnationIs) {
  policy_.restart.max_restarts = 1;
  Run(2);
  Kinds();
  Reconnect(2, 12, 0, NodeState::kRunning, 1);
  EXPECT_THAT(Kinds(), ElementsAre());
  Reconnect(2, 22, 1, NodeState::kNone, 0);
  EXPECT_THAT(Kinds(), ElementsAre("node_joined", "round_stopping"));
  EXPECT_EQ(Last<events::NodeJoined>().incarnation, 1);
}

TEST_F(CoordinatorDecisionsTest, TheNextIncarnationDoesNotRepeatTheVerdict) {
  Open(1, 1, CoordinatorRecord{.verdict = Verdict{kExitNoRendezvous, "gave up"}});
  Join(1);
  EXPECT_THAT(Kinds(), ElementsAre());
}

TEST_F(CoordinatorDecisionsTest, ALargeRoundNamesItsFirstNodes) {
  Open(100, 100);
  for (uint64_t node = 1; node <= 100; ++node) Join(node);
  EXPECT_EQ(Last<events::RoundFormed>().node_count, 100);
  EXPECT_EQ(Last<events::RoundFormed>().nodes.size(), 64u);
}

}  // namespace
}  // namespace rankrun::agent
