// Nodes leave a job, join it or wait as spares; users end it.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "tests/process/nodes.h"
#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSucceedsInAttempt1 = "[ $A = 0 ] || exit 0\nexec sleep 1000";
constexpr const char* kUntilEnd = "until [ -e end ]; do sleep 0.01; done";

using NodesLeaveTest = NodesTest;

TEST_F(NodesLeaveTest, TheJobGoesOnWithoutADrainedNode) {
  job = {"--nnodes=1:2", "--last-call=10"};
  Job& host = StartHost({"-n1"}, Stamped(kSucceedsInAttempt1));
  Job& guest = StartGuest({"-n1"}, Stamped(kSucceedsInAttempt1));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  guest.Signal(SIGTERM);
  EXPECT_EQ(guest.Wait(), Code(204)) << Errors();
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(1, 1)) << Errors();
  EXPECT_EQ(Overlaps(), "");
  EXPECT_THAT(host.Err(), HasSubstr("leaves: it got SIGTERM"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesLeaveTest, ADrainedNodesWorkersHaveTheirGrace) {
  job = {"--nnodes=1:2", "--last-call=10"};
  std::string script = Stamped(
      "[ $A = 0 ] || exit 0\ntrap 'until [ -e saved ]; do sleep 0.01; done; echo saved $RANK "
      ">>ends; "
      "exit 0' TERM\ntouch trapped.$RANK; while :; do sleep 0.01; done");
  Job& host = StartHost({"-n1", "--node-rank=0"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForFiles({"trapped.0", "trapped.1"})) << Errors();
  guest.Signal(SIGTERM);
  ASSERT_TRUE(host.WaitForErr("stopping the workers")) << Errors();
  Touch("saved");
  EXPECT_EQ(guest.Wait(), Code(204)) << Errors();
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(Count(Read("ends"), "saved"), 2);
  EXPECT_EQ(Overlaps(), "");
}

TEST_F(NodesLeaveTest, AWorkerThatSavesIsNamedByItsGlobalRank) {
  std::string script = Stamped(
      "trap 'echo \"$RANK saving\" > $RANKRUN_SAVE_FIFO; until [ -e go ]; do sleep 0.01; done; "
      "exit 0' TERM\ntouch trapped.$RANK; while :; do sleep 0.01; done");
  job.insert(job.end(), {"--shutdown-timeout=0.2", "--save-timeout=1000"});
  StartHost({"-n1", "--node-rank=0"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForFiles({"trapped.0", "trapped.1"})) << Errors();
  guest.Signal(SIGTERM);
  EXPECT_TRUE(guest.WaitForErr("rankrun: rank 1 is saving: waiting up to 1000.0 s\n")) << Errors();
  Touch("go");
  EXPECT_TRUE(guest.Wait().has_value()) << Errors();
}

TEST_F(NodesLeaveTest, AJobWithTooFewNodesLeftIsDrained) {
  for (bool is_host : {false, true}) {
    unlink(folder.Path("up").c_str());
    nodes.clear();
    Job& host = StartHost({"-n1"}, Stamped(kSucceedsInAttempt1));
    Job& guest = StartGuest({"-n1"}, Stamped(kSucceedsInAttempt1));
    ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
    (is_host ? host : guest).Signal(SIGTERM);
    EXPECT_EQ(guest.Wait(), Code(204)) << Errors();
    EXPECT_EQ(host.Wait(), Code(204)) << Errors();
    EXPECT_TRUE(WaitForUp(0, 1));
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

TEST_F(NodesLeaveTest, AllNodesAreDrainedAtOnce) {
  StartHost({"-n1"}, Stamped(kSucceedsInAttempt1));
  StartGuest({"-n1"}, Stamped(kSucceedsInAttempt1));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  for (const auto& node : nodes) node->Signal(SIGTERM);
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(204)) << Errors();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesLeaveTest, ControlCAtOneNodeEndsTheJob) {
  for (bool is_host : {false, true}) {
    unlink(folder.Path("up").c_str());
    nodes.clear();
    Job& host = StartHost({"-n1"}, Stamped(kSucceedsInAttempt1));
    Job& guest = StartGuest({"-n1"}, Stamped(kSucceedsInAttempt1));
    ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
    Job& asked = is_host ? host : guest;
    Job& other = is_host ? guest : host;
    asked.Signal(SIGINT);
    EXPECT_EQ(asked.Wait(), (ProcessExit{.signaled = true, .value = SIGINT})) << Errors();
    EXPECT_EQ(other.Wait(), Code(130)) << Errors();
    EXPECT_THAT(other.Err(), HasSubstr("stopped by SIGINT"));
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

TEST_F(NodesLeaveTest, ASecondControlCKillsTheWorkers) {
  std::string deaf = Stamped("trap '' INT TERM; touch deaf.$RANK; while :; do sleep 0.01; done");
  Job& host = StartHost({"-n1", "--shutdown-timeout=1000"}, deaf);
  Job& guest = StartGuest({"-n1", "--shutdown-timeout=1"}, deaf);
  ASSERT_TRUE(WaitForFiles({"deaf.0", "deaf.1"})) << Errors();
  host.Signal(SIGINT);
  ASSERT_TRUE(host.WaitForErr("a second signal kills them at once"));
  ASSERT_TRUE(WaitFor([&] {
    host.Signal(SIGINT);
    return host.Wait(milliseconds(100)).has_value();
  })) << Errors();
  EXPECT_EQ(guest.Wait(), Code(130)) << Errors();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesLeaveTest, ANodeThatWaitsForOthersCanBeEnded) {
  for (int number : {SIGINT, SIGTERM}) {
    nodes.clear();
    Job& host = StartHost({"-n1"}, "exit 0");
    ASSERT_TRUE(WaitFor([&] { return AgentOf(host) != 0; }));
    host.Signal(number);
    EXPECT_TRUE(host.Wait().has_value()) << number << Errors();
    Job& guest = StartGuest({"-n1"}, "exit 0");
    ASSERT_TRUE(WaitFor([&] { return AgentOf(guest) != 0; }));
    guest.Signal(number);
    EXPECT_TRUE(guest.Wait().has_value()) << number << Errors();
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

// --- Nodes join

TEST_F(NodesLeaveTest, ASecondNodeJoinsARunningJob) {
  job = {"--nnodes=1:2", "--last-call=0.1"};
  Job& host = StartHost({"-n1"}, Stamped(kSucceedsInAttempt1));
  ASSERT_TRUE(WaitForUp(1, 0)) << Errors();
  Job& guest = StartGuest({"-n1"}, Stamped(kSucceedsInAttempt1));
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(2, 1)) << Errors();
  EXPECT_EQ(Overlaps(), "");
}

TEST_F(NodesLeaveTest, ASpareEndsWithTheJob) {
  StartHost({"-n1"}, Stamped(kUntilEnd));
  StartGuest({"-n1"}, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  Job& spare = StartGuest({"-n1"}, Stamped(kUntilEnd));
  ASSERT_TRUE(spare.WaitForErr("this one is a spare\n")) << Errors();
  Touch("end");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  EXPECT_EQ(Count(Read("up"), "up"), 2);
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesLeaveTest, ASpareTakesTheDrainedNodesPlace) {
  job = {"--nnodes=3", "--spares=1", "--last-call=0.2"};
  StartHost({"-n1", "--node-rank=0"}, Stamped(kUntilEnd));
  StartGuest({"-n1"}, Stamped(kUntilEnd));
  StartGuest({"-n1"}, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  // The node that joins last is the spare. The host can be the last one.
  auto is_spare = [&](size_t i) {
    return nodes[i]->Err().find("the job has its 2 nodes; this one is a spare") !=
           std::string::npos;
  };
  ASSERT_TRUE(WaitFor([&] { return is_spare(0) || is_spare(1) || is_spare(2); })) << Errors();
  Job* busy = nodes[is_spare(1) ? 2 : 1].get();
  busy->Signal(SIGTERM);
  EXPECT_EQ(busy->Wait(), Code(204)) << Errors();
  ASSERT_TRUE(WaitForUp(2, 1)) << Errors();
  Touch("end");
  for (const auto& node : nodes) {
    EXPECT_EQ(node->Wait(), Code(node.get() == busy ? 204 : 0)) << Errors();
  }
  EXPECT_EQ(Overlaps(), "");
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesLeaveTest, TheJobsTimeIsOverForAllNodes) {
  Job& host = StartHost({"-n1", "--timeout=1.5"}, Stamped("exec sleep 1000"));
  Job& guest = StartGuest({"-n1"}, Stamped("exec sleep 1000"));
  EXPECT_EQ(host.Wait(), Code(124)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(124)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("the job's time (--timeout) is over"));
}

// --- A node whose workers fail again and again changes places with a spare. ---

// The workers of a node with the variable SICK fail before they have done anything.
const std::string kFailsIfSick =
    "until [ -e go ]; do sleep 0.01; done\n"
    "[ -z \"$SICK\" ] || exit 3\n"
    "touch healthy.$A.$RANK\n"
    "until [ -e end ]; do sleep 0.01; done";

struct NodesReplaceTest : NodesTest {
  NodesReplaceTest() {
    job = {"--nnodes=3", "--spares=1", "--last-call=0.2", "--max-restarts=3",
           "--restart-pause=0.1"};
  }

  // Starts two nodes with workers, one of them sick, and a spare.
  void StartAll(bool is_host_sick) {
    if (is_host_sick) variables["SICK"] = "1";
    host = &StartHost({"-n1", "--node-rank=0"}, Stamped(kFailsIfSick));
    variables.clear();
    if (!is_host_sick) variables["SICK"] = "1";
    guest = &StartGuest({"-n1"}, Stamped(kFailsIfSick));
    variables.clear();
    ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
    spare = &StartGuest({"-n1"}, Stamped(kFailsIfSick));
    ASSERT_TRUE(spare->WaitForErr("this one is a spare\n")) << Errors();
    Touch("go");
  }
  void ExpectSuccess() {
    Touch("end");
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
    EXPECT_EQ(Overlaps(), "");
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }

  Job* host = nullptr;
  Job* guest = nullptr;
  Job* spare = nullptr;
};

TEST_F(NodesReplaceTest, ANodeChangesPlacesAfterItsSecondFailure) {
  StartAll(false);
  ASSERT_TRUE(WaitForFiles({"healthy.2.0", "healthy.2.1"})) << Errors();
  ASSERT_TRUE(guest->WaitForErr("this one is a spare: replaced after 2 failures in a row\n"))
      << Errors();
  const std::string replaced = "; node [^ ]+ changes places with the spare [^ ]+\n";
  for (const auto& node : nodes) {
    ASSERT_TRUE(node->WaitForErr("changes places with the spare")) << Errors();
    EXPECT_THAT(node->Err(), ContainsRegex("nodes of the causes: [^ ]+ \\(attempts 0-1\\)\n"));
    EXPECT_THAT(node->Err(), ContainsRegex("next: restart 2 of 3, [^\n]+" + replaced));
    EXPECT_THAT(node->Err(), Not(ContainsRegex("next: restart 1 of 3, [^\n]+" + replaced)));
  }
  EXPECT_EQ(access(folder.Path("healthy.1.1").c_str(), F_OK), -1);
  const auto status_shows_it = [&] {  // not if a node was slow to answer
    Job status({.arguments = {"status", "--once", "--job=" + std::to_string(host->pid())},
                .program = kRankctl});
    EXPECT_TRUE(status.Wait());
    return status.Out().find(
               " waits: the job has its 2 nodes; this one is a spare: replaced after "
               "2 failures in a row\n") != std::string::npos;
  };
  EXPECT_TRUE(WaitFor(status_shows_it)) << Errors();
  ExpectSuccess();
}

// Its coordinator stays there.
TEST_F(NodesReplaceTest, TheNodeOfTheCoordinatorChangesPlacesToo) {
  job.push_back("--replace-after=1");
  StartAll(true);
  ASSERT_TRUE(WaitForFiles({"healthy.1.0", "healthy.1.1"})) << Errors();
  ASSERT_TRUE(host->WaitForErr("this one is a spare: replaced after 1 failure")) << Errors();
  ExpectSuccess();
}

TEST_F(NodesReplaceTest, WithZeroTheBudgetIsUsedUp) {
  job.push_back("--replace-after=0");
  StartAll(false);
  for (const auto& node : nodes) {
    EXPECT_EQ(node->Wait(), Code(3)) << Errors();
    EXPECT_THAT(node->Err(), AllOf(ContainsRegex("nodes of the causes: [^ ]+ \\(attempts 0-3\\)\n"),
                                   Not(HasSubstr("changes places"))));
  }
}

}  // namespace
}  // namespace rankrun::testing
