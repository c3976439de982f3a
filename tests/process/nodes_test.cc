// Jobs of several nodes: ranks, the store, failures of workers, ends.

#include "tests/process/nodes.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOfArray;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr const char* kPlace =
    "echo at $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE "
    "$ROLE_RANK/$ROLE_WORLD_SIZE $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS "
    "$TORCHELASTIC_RUN_ID\n";
// Each rank sets a key and waits for the keys of all ranks.
const std::string kMeet = kRankctl + " store set here-$RANK $RANK && " + kRankctl +
                          " store wait here-0 here-1 here-2 && echo met\n";

TEST_F(NodesTest, ANodeHasAsManyRanksAsItHasWorkers) {
  std::string script = kPlace + kMeet;
  Job& host = StartHost({"-n2", "--node-rank=0", "--rdzv-id=x7"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--rdzv-id=x7"}, script);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_THAT(host.Out(), AllOf(HasSubstr("at 0/3 0/2 0/2 0/3 0/0 x7\n"),
                                HasSubstr("at 1/3 1/2 0/2 1/3 0/0 x7\n")));
  EXPECT_THAT(guest.Out(), HasSubstr("at 2/3 0/1 1/2 2/3 0/0 x7\n"));
  EXPECT_EQ(Count(host.Out() + guest.Out(), "met\n"), 3) << Errors();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// After the restart, the guest's rank is that of the round.
TEST_F(NodesTest, PlaceholdersHaveTheRanksOfEachAttempt) {
  std::string script =
      "echo \"$TORCHELASTIC_RESTART_COUNT: ${rank}=$RANK ${node_rank}=$GROUP_RANK "
      "${world_size}=$WORLD_SIZE ${hostname}=$(uname -n)\"\n"
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\n"
      "until [ -e " +
      folder.Path("go") + " ]; do sleep 0.01; done; exit 1";
  Job& host = StartHost({"-n2", "--node-rank=0", "--max-restarts=1"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--max-restarts=1"}, script);
  ASSERT_TRUE(host.WaitForOut("0: 0=") && host.WaitForOut("0: 1=") && guest.WaitForOut("0: 2="));
  Touch("go");
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  std::string ending = " 3=3 " + std::string(name) + "=" + name + "\n";
  EXPECT_THAT(host.Out(),
              AllOf(HasSubstr("0: 0=0 0=0" + ending), HasSubstr("1: 1=1 0=0" + ending)));
  EXPECT_THAT(guest.Out(),
              AllOf(HasSubstr("0: 2=2 1=1" + ending), HasSubstr("1: 2=2 1=1" + ending)));
}

TEST_F(NodesTest, TheStoreIsWhereRankZeroIs) {
  std::string script = "echo $MASTER_PORT >port.$RANK\n" + kMeet;
  Job& host = StartHost({"-n1", "--node-rank=1"}, script);
  Job& guest = StartGuest({"-n2", "--node-rank=0"}, script);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_EQ(Count(host.Out() + guest.Out(), "met\n"), 3) << Errors();
  EXPECT_EQ(Read("port.0"), Read("port.2"));
  EXPECT_NE(Read("port.0"), port + "\n");
}

TEST_F(NodesTest, TheStaticBackendMeetsAtTheMastersPort) {
  std::string script = "echo at $MASTER_ADDR:$MASTER_PORT $RANK\n" + kMeet;
  std::vector<std::string> master = {"--master-addr=localhost", "--master-port=" + port};
  auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), master.begin(), master.end());
    return flags;
  };
  Job& second = Start(with({"-n1", "--node-rank=1"}), script);
  Job& first = Start(with({"-n2", "--node-rank=0"}), script);
  EXPECT_EQ(first.Wait(), Code(0)) << Errors();
  EXPECT_EQ(second.Wait(), Code(0)) << Errors();
  EXPECT_EQ(Count(first.Out() + second.Out(), "met\n"), 3) << Errors();
  EXPECT_THAT(second.Out(), HasSubstr("at localhost:" + port + " 2\n"));
  EXPECT_THAT(first.Out(), HasSubstr("at localhost:" + port + " 0\n"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesTest, EachAttemptHasAnEmptyStore) {
  std::string script = Stamped(
      "until [ $(wc -l <up) -ge $((3 * (A + 1))) ]; do sleep 0.01; done\n"
      "[ $(" +
      kRankctl + " store add started) -le 3 ] || exit 9\n" + kMeet +
      "[ $A -gt 0 ] || [ $RANK != 1 ] || exit 3\n[ $A -gt 0 ] || sleep 1000");
  for (const char* backend : {"c10d", "static"}) {
    std::vector<std::string> flags = {"-n1", "--max-restarts=1",
                                      std::string("--rdzv-backend=") + backend,
                                      "--rdzv-endpoint=localhost:" + port};
    nodes.clear();
    unlink(folder.Path("up").c_str());
    job[0] = "--nnodes=3";
    for (const char* node_rank : {"0", "1", "2"}) {
      flags.push_back("--node-rank=" + std::string(node_rank));
      Start(flags, script);
      flags.pop_back();
    }
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << backend << Errors();
    EXPECT_EQ(Overlaps(), "");
  }
}

// --- Failures

TEST_F(NodesTest, AFailureRestartsTheWorkersOfAllNodes) {
  std::string script = Stamped(
      "if [ $A = 0 ]; then until [ -e go ]; do sleep 0.01; done; [ $RANK != 3 ] || exit 7; "
      "sleep 1000; fi\n");
  Job& host = StartHost({"-n2", "--node-rank=0", "--max-restarts=2"}, script);
  Job& guest = StartGuest({"-n2", "--node-rank=1", "--max-restarts=2"}, script);
  ASSERT_TRUE(WaitForUp(4, 0)) << Errors();
  Touch("go");
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(4, 1)) << Errors();
  EXPECT_EQ(Overlaps(), "");
  for (const auto& node : nodes) {
    EXPECT_THAT(node->Err(),
                AllOf(ContainsRegex("cause: rank 3 on [^ ]+ \\(pid [0-9]+\\): exit code 7\n"),
                      HasSubstr("next: restart 1 of 2, at once\n")));
  }
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// Returns "node_joined", "round_formed", ..., in the order of the lines.
std::vector<std::string> KindsOf(const std::string& events) {
  std::vector<std::string> kinds;
  const std::string begin = "\"event\":\"";
  for (size_t at = events.find(begin); at != std::string::npos; at = events.find(begin, at)) {
    at += begin.size();
    kinds.push_back(events.substr(at, events.find('"', at) - at));
  }
  return kinds;
}

TEST_F(NodesTest, TheCoordinatorsDecisionsAreEventsOfItsNodeAlone) {
  std::string script = Stamped("[ $A = 1 ] || exit 7\n");
  StartHost({"-n1", "--node-rank=0", "--max-restarts=1", "--events=" + folder.Path("host")},
            script);
  StartGuest({"-n1", "--node-rank=1", "--max-restarts=1", "--events=" + folder.Path("guest")},
             script);
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  std::vector<std::string> decisions;
  for (const std::string& kind : KindsOf(Read("host"))) {
    bool is_decision = kind.starts_with("node_") || kind.starts_with("round_") ||
                       kind == "restart_decided" || kind == "verdict";
    if (is_decision) decisions.push_back(kind);
  }
  EXPECT_THAT(decisions, ElementsAre("node_joined", "node_joined", "round_formed", "round_stopping",
                                     "restart_decided", "round_formed", "verdict"));
  EXPECT_EQ(KindsOf(Read("host")).back(), "job_ended");
  EXPECT_THAT(KindsOf(Read("guest")),
              IsSupersetOf({"attempt_started", "restart", "report", "job_ended"}));
  EXPECT_THAT(KindsOf(Read("guest")), Not(Contains(AnyOfArray(decisions))));
}

TEST_F(NodesTest, TheBudgetIsThatOfTheJob) {
  // The worker of the other node fails in each attempt.
  std::string script = Stamped("[ $((A % 2)) != $RANK ] || exit $((40 + A))\nsleep 1000");
  Job& host = StartHost({"-n1", "--node-rank=0", "--max-restarts=2"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--max-restarts=2"}, script);
  EXPECT_EQ(host.Wait(), Code(42)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(42)) << Errors();
  EXPECT_EQ(Overlaps(), "");
  for (const auto& node : nodes) {
    EXPECT_THAT(node->Err(),
                AllOf(ContainsRegex("cause: rank 0 on [^ ]+ \\(pid [0-9]+\\): exit code 42\n"),
                      HasSubstr("next: the end, 2 of 2 restarts used; exit code 42\n")));
  }
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// The peer fails as well, with a failure of its own, when its agent stops it.
TEST_F(NodesTest, AKilledWorkerIsTheCauseAndItsPeersAreNot) {
  std::string script = Stamped(
      "echo $$ >pid.$RANK\n[ $RANK = 0 ] || exec sleep 1000\n"
      "trap 'echo RuntimeError: Connection closed by peer >&2; exit 5' TERM\n"
      "touch ready; while :; do sleep 0.01; done");
  StartHost({"-n1", "--node-rank=0"}, script);
  StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  ASSERT_TRUE(WaitFor([&] {
    return std::filesystem::exists(folder.Path("ready")) && Read("pid.1").ends_with("\n");
  }));
  kill(std::stoi(Read("pid.1")), SIGSEGV);
  for (const auto& node : nodes) {
    EXPECT_EQ(node->Wait(), Code(128 + SIGSEGV)) << Errors();
    EXPECT_THAT(
        node->Err(),
        AllOf(ContainsRegex("cause: rank 1 on [^ ]+ \\(pid [0-9]+\\): killed by SIGSEGV"),
              ContainsRegex("then: rank 0 on [^ ]+ \\(pid [0-9]+\\): lost its peer, exit code 5"),
              Not(HasSubstr("cause: rank 0"))));
  }
}

TEST_F(NodesTest, AWorkerThatDoesNotFinishIsNamed) {
  std::string script = Stamped("[ $RANK != 1 ] || exec sleep 1000");
  Job& host = StartHost({"-n1", "--node-rank=0", "--finish-timeout=0.2"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--finish-timeout=0.2"}, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  for (const auto& node : nodes) {
    EXPECT_THAT(
        node->Err(),
        ContainsRegex("not finished 0.200 s after the first node \\(--finish-timeout\\): "
                      "rank 1 on [^ \n]+; nothing visible shows whether it waits for rank 0, "
                      "which ended with exit code 0\n"));
  }
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(NodesTest, OfANodeOnlyThoseThatDoNotFinishAreNamed) {
  std::string script = Stamped("[ $RANK != 2 ] || exec sleep 1000");
  std::vector<std::string> flags = {"--finish-timeout=4", "--node-timeout=20"};
  Job& host = StartHost({"-n1", "--node-rank=0", flags[0], flags[1]}, script);
  Job& guest = StartGuest({"-n3", "--node-rank=1", flags[0], flags[1]}, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  for (const auto& node : nodes) {
    EXPECT_THAT(
        node->Err(),
        ContainsRegex("\\(--finish-timeout\\): rank 2 on [^ \n]+; nothing visible shows whether it "
                      "waits for ranks 0, 1, 3, which ended with exit code 0\n"));
  }
}

// A node whose workers are done waits for the others. A failure on another node
// then restarts its workers as well.
TEST_F(NodesTest, ANodeThatIsDoneStartsAgainWithTheOthers) {
  std::string script = Stamped(
      "[ $A = 0 ] || exit 0\n[ $RANK != 0 ] || exit 0\n"
      "until [ -e go ]; do sleep 0.01; done; exit 3");
  Job& host = StartHost({"-n1", "--node-rank=0", "--max-restarts=1"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--max-restarts=1"}, script);
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  Touch("go");
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(2, 1));
  EXPECT_EQ(Overlaps(), "");
}

// A node whose workers are done, and a spare, show the report as well.
TEST_F(NodesTest, TheReportIsShownWhereNothingHadFailed) {
  job[0] = "--nnodes=2";
  std::string script =
      Stamped("[ $RANK != 0 ] || exit 0\nuntil [ -e go ]; do sleep 0.01; done; exit 3");
  StartHost({"-n1", "--node-rank=0"}, script);
  StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  Job& spare = StartGuest({"-n1"}, script);
  ASSERT_TRUE(spare.WaitForErr("this one is a spare\n")) << Errors();
  Touch("go");
  for (const auto& node : nodes) {
    EXPECT_EQ(node->Wait(), Code(3)) << Errors();
    EXPECT_THAT(node->Err(),
                ContainsRegex("cause: rank 1 on [^ ]+ \\(pid [0-9]+\\): exit code 3\n"));
  }
}

TEST_F(NodesTest, AShortJobOfFourNodesSucceedsEverywhere) {
  job[0] = "--nnodes=4";
  StartHost({"-n1"}, "exit 0");
  for (int i = 0; i < 3; ++i) StartGuest({"-n1"}, "exit 0");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

}  // namespace
}  // namespace rankrun::testing
