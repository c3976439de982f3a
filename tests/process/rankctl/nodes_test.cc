// rankctl asks and orders running jobs of several nodes, from any of them.

#include "tests/process/nodes.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Each node has a folder for sockets of its own, as on hosts of their own.
struct RankctlNodesTimingTest : NodesTest {
  RankctlNodesTimingTest() { job = {"--nnodes=2", "--node-timeout=10", "-n2", "--insecure"}; }

  void StartNodes(const std::string& script, int sleeping = 4) {
    UseFolder("a");
    StartHost({}, script);
    UseFolder("b");
    StartGuest({}, script);
    ASSERT_TRUE(WaitFor([&] { return HasSocket("a") && HasSocket("b"); })) << Errors();
    ASSERT_TRUE(WaitFor([&] { return Count(Out("b"), "sleeping") == sleeping; })) << Errors();
  }
  void UseFolder(const std::string& name) {
    std::filesystem::create_directory(folder.Path(name));
    variables = {{"RANKRUN_SOCKET_DIR", folder.Path(name) + "/rankrun"}};
  }
  bool HasSocket(const std::string& name) const {
    return Out(name, {"ps"}).find("running") != std::string::npos;
  }
  // Nodes are ranked as they arrive.
  std::string NodeRank(const std::string& name) const {
    const std::string field = "\"node_rank\":";
    std::string json = Out(name, {"ps", "--json"});
    return json.substr(json.find(field) + field.size(), 1);
  }

  // Runs rankctl on a node to its end; returns both of its outputs.
  std::string Out(const std::string& name, std::vector<std::string> arguments = {"status"}) const {
    Job command({.arguments = std::move(arguments),
                 .variables = {{"RANKRUN_SOCKET_DIR", folder.Path(name) + "/rankrun"}},
                 .program = kRankctl});
    command.Wait();
    return command.Out() + command.Err();
  }
};

const std::string kWaits = "echo here $RANK attempt $TORCHELASTIC_RESTART_COUNT; exec sleep 1000";

TEST_F(RankctlNodesTimingTest, EachNodeShowsAllRanks) {
  StartNodes(kWaits);
  for (const char* node : {"a", "b"}) {
    EXPECT_TRUE(WaitFor([&] {
      std::string text = Out(node);
      return Count(text, "sleeping") == 4 && Count(text, "here 3") == 1;
    })) << Out(node);
    EXPECT_THAT(Out(node, {"why"}), HasSubstr("ranks 0-3: are sleeping"));
    EXPECT_THAT(Out(node, {"logs", "0"}), HasSubstr("here 0"));
    EXPECT_THAT(Out(node, {"logs", "3"}), HasSubstr("here 3"));
    EXPECT_THAT(Out(node, {"logs", "4"}), HasSubstr("no rank 4 runs in this job"));
  }
}

TEST_F(RankctlNodesTimingTest, EqualStacksOfAllNodesAreShownTogether) {
  const std::string stacked = test::Program("stacked");
  StartNodes("[ $RANK = 2 ] && exec " + stacked + " lock; exec sleep 1000", 3);
  for (const char* node : {"a", "b"}) {
    std::string text;
    auto are_shown = [&] {  // on a busy machine rank 2 may not be that far, or a stack be late
      text = Out(node, {"stacks"});
      return text.find("LockTwice") != std::string::npos && Count(text, "state") == 4;
    };
    EXPECT_TRUE(WaitFor(are_shown)) << text;
    EXPECT_THAT(text, StartsWith("ranks 0, 1, 3 (here rank 0 on "));
    EXPECT_THAT(text, ContainsRegex("\n\nrank 2 on .*: pid [0-9]+ \\(stacked\\), state S\n"));
  }
  EXPECT_THAT(Out("a", {"stacks", "3", "--json"}),
              ContainsRegex(R"(^\{"ranks":\[3\],"processes":\[\{"rank":3,"pid":[0-9]+,"node":)"));
  EXPECT_THAT(Out("b", {"stacks", "2-4"}), HasSubstr("no rank 4 in job "));
}

TEST_F(RankctlNodesTimingTest, StacksOfANodeThatDoesNotAnswerAreMissed) {
  StartNodes(kWaits);
  const pid_t agent = AgentOf(*nodes[1]);
  kill(agent, SIGSTOP);
  const std::string text = Out("a", {"stacks"});
  kill(agent, SIGCONT);
  EXPECT_THAT(text, ContainsRegex("ranks (0, 1|2, 3): no answer from "));
  EXPECT_THAT(text, ContainsRegex("ranks (0, 1|2, 3) \\(here rank [02] on .*: pid "));
}

TEST_F(RankctlNodesTimingTest, ARestartFromAMemberIsOneOfTheWholeJob) {
  StartNodes(kWaits);
  EXPECT_THAT(Out("b", {"restart"}), StartsWith("all workers start again"));
  for (auto& node : nodes) EXPECT_TRUE(node->WaitForOut("attempt 1")) << Errors();
  EXPECT_THAT(Out("a", {"restart"}), StartsWith("all workers start again"));
  for (auto& node : nodes) EXPECT_TRUE(node->WaitForOut("attempt 2")) << Errors();
  EXPECT_THAT(Errors(), HasSubstr("asked by rankctl"));
  EXPECT_THAT(Errors(), Not(HasSubstr("cause:"))) << "nothing has failed";
}

TEST_F(RankctlNodesTimingTest, AStopFromAMemberEndsTheWholeJob) {
  StartNodes(kWaits);
  EXPECT_THAT(Out("b", {"stop"}), StartsWith("the workers have up to"));
  for (auto& node : nodes) EXPECT_EQ(node->Wait(), Code(128 + SIGTERM)) << Errors();
  EXPECT_THAT(nodes[0]->Err(), HasSubstr("stopped by rankctl"));
}

TEST_F(RankctlNodesTimingTest, ANodeIsDrainedFromAnother) {
  job[0] = "--nnodes=1:2";
  StartNodes(kWaits);
  EXPECT_THAT(Out("a", {"drain", "nowhere"}), HasSubstr("no node \"nowhere\" in this job"));
  EXPECT_THAT(Out("a", {"drain", NodeRank("b")}), HasSubstr("leaves the job"));
  EXPECT_TRUE(nodes[1]->Wait()) << Errors();
  EXPECT_TRUE(nodes[0]->WaitForOut("attempt 1")) << Errors();
}

TEST_F(RankctlNodesTimingTest, AStopFromANodeThatIsDrainedEndsTheWholeJob) {
  job[0] = "--nnodes=1:2";
  job.push_back("--shutdown-timeout=5");
  StartNodes("trap '' TERM; exec sleep 1000");
  EXPECT_THAT(Out("a", {"drain", NodeRank("b")}), HasSubstr("leaves the job"));
  EXPECT_THAT(Out("b", {"stop"}), HasSubstr("the other nodes are to end, too"));
  EXPECT_EQ(nodes[0]->Wait(), Code(128 + SIGTERM)) << Errors();
  EXPECT_TRUE(nodes[1]->Wait());
  EXPECT_THAT(nodes[0]->Err(), HasSubstr("stopped by rankctl"));
}

TEST_F(RankctlNodesTimingTest, ANodeThatDoesNotAnswerIsNamed) {
  StartNodes(kWaits);
  pid_t agent = AgentOf(*nodes[1]);
  kill(agent, SIGSTOP);
  std::string text = Out("a");
  kill(agent, SIGCONT);
  EXPECT_THAT(text, HasSubstr("no answer from "));
  EXPECT_EQ(Count(text, "sleeping"), 2) << text;
}

TEST_F(RankctlNodesTimingTest, WithoutTheCoordinatorANodeAnswersForItself) {
  StartNodes(kWaits);
  pid_t agent = AgentOf(*nodes[0]);
  kill(agent, SIGSTOP);
  std::string text = Out("b");
  kill(agent, SIGCONT);
  EXPECT_THAT(text, HasSubstr("only this node has answered: the coordinator has not answered"));
  EXPECT_THAT(text, HasSubstr("job "));
}

}  // namespace
}  // namespace rankrun::testing
