// Agents, guardians and whole nodes of a job die or stop to answer.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "tests/paths.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A worker that lives in the first attempt and succeeds in later ones.
constexpr const char* kSecondTimeLucky = "[ $A = 0 ] || exit 0\nexec sleep 1000";
constexpr const char* kUntilEnd = "until [ -e end ]; do sleep 0.01; done";

// Returns the number of connections that a listener of this machine has accepted.
int ConnectionsTo(int port) {
  constexpr int kEstablished = 1;
  int count = 0;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(ReadText(table));
    for (std::string line; std::getline(lines, line);) {
      unsigned local = 0, state = 0;
      int found =
          std::sscanf(line.c_str(), " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state);
      if (found == 2 && local == static_cast<unsigned>(port) && state == kEstablished) ++count;
    }
  }
  return count;
}

struct NodesDeathTest : NodesTest {
  NodesDeathTest() { job.push_back("--max-restarts=3"); }
  void ExpectAllEndWith(int code) {
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(code)) << Errors();
    EXPECT_EQ(Overlaps(), "") << Errors();
    EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
  }
  // Returns the script of two workers. In the first attempt they are connected, and
  // `rank` fails as PyTorch's do when the other one is gone. In the next one they
  // succeed when there is a file `end`.
  std::string LosesItsPeer(int rank) const {
    EXPECT_EQ(mkfifo(folder.Path("connection").c_str(), 0600), 0);
    return Stamped("[ $A = 0 ] || { until [ -e end ]; do sleep 0.01; done; exit 0; }\n[ $RANK = " +
                   std::to_string(rank) +
                   " ] || { exec 3>connection; touch connected; exec sleep 1000; }\n"
                   "cat connection\necho RuntimeError: Connection closed by peer >&2\nexit 1");
  }
  static bool WaitForNoWorker(const Job& node) {
    return WaitFor([&] { return ChildrenOf(AgentOf(node)).empty(); });
  }
  bool WaitForConnection() const { return WaitForFiles({"connected"}); }
};

TEST_F(NodesDeathTest, AnAgentsNextIncarnationJoinsAgain) {
  StartHost({"-n2", "--node-rank=0"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n2", "--node-rank=1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(4, 0)) << Errors();
  KillAgent(guest, SIGKILL);
  ExpectAllEndWith(0);
  EXPECT_TRUE(WaitForUp(4, 1)) << Errors();
}

TEST_F(NodesDeathTest, AnAgentThatDiesBeforeTheFirstRoundIsANewcomerAgain) {
  job[0] = "--nnodes=3";
  Job& host = StartHost({"-n1"}, Stamped("exit 0"));
  Job& guest = StartGuest({"-n1"}, Stamped("exit 0"));
  ASSERT_TRUE(WaitFor([&] { return ConnectionsTo(std::stoi(port)) == 2; })) << Errors();
  for (Job* node : {&guest, &host}) {
    pid_t before = AgentOf(*node);
    kill(before, SIGKILL);
    ASSERT_TRUE(WaitFor([&] { return AgentOf(*node) != before && AgentOf(*node) != 0; }))
        << Errors();
  }
  StartGuest({"-n1"}, Stamped("exit 0"));
  ExpectAllEndWith(0);
  EXPECT_TRUE(WaitForUp(3, 0)) << Errors();
}

// A traced process exists until its tracer has reaped it, even after SIGKILL.
TEST_F(NodesDeathTest, AProcessThatDoesNotDieHoldsUpItsNodeAlone) {
  job = {"--nnodes=1:2", "--node-timeout=4", "--max-restarts=1", "--shutdown-timeout=0.2"};
  std::string script = Stamped(
      "echo $$ >pid.$RANK.$A\n[ $A$RANK != 00 ] || { until [ -e go ]; do sleep 0.01; done; exit 3; "
      "}\n" +
      std::string(kUntilEnd));
  Job& host = StartHost({"-n1", "--node-rank=0", "--events=" + folder.Path("events")}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  ASSERT_TRUE(WaitFor([&] { return Read("pid.1.0").ends_with("\n"); }));
  pid_t worker = std::stoi(Read("pid.1.0"));
  if (ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) != 0) {
    Touch("go");
    Touch("end");
    GTEST_SKIP() << "tracing is not permitted here";
  }
  Touch("go");
  ASSERT_TRUE(WaitForUp(1, 1)) << Errors();
  for (const Job* node : {&host, &guest}) {
    EXPECT_TRUE(node->WaitForErr(" counts as lost: rank 1, pid " + std::to_string(worker) + " ("));
    EXPECT_TRUE(node->WaitForErr("does not die of SIGKILL; the job goes on without it\n"));
  }
  EXPECT_THAT(Read("events"), HasSubstr("\"event\":\"node_lost\""));
  EXPECT_TRUE(host.WaitForErr("next: restart 1 of 1, at once; node ")) << Errors();
  ASSERT_EQ(waitpid(worker, nullptr, __WALL), worker);
  EXPECT_TRUE(WaitForUp(2, 2)) << Errors();
  Touch("end");
  ExpectAllEndWith(0);
}

TEST_F(NodesDeathTest, TheCoordinatorsNextIncarnationGoesOn) {
  for (int count : {2, 3}) {
    nodes.clear();
    unlink(folder.Path("up").c_str());
    job[0] = "--nnodes=" + std::to_string(count);
    Job& host = StartHost({"-n1", "--node-rank=0"}, Stamped(kSecondTimeLucky));
    for (int i = 1; i < count; ++i) {
      StartGuest({"-n1", "--node-rank=" + std::to_string(i)}, Stamped(kSecondTimeLucky));
    }
    ASSERT_TRUE(WaitForUp(count, 0)) << Errors();
    KillAgent(host, SIGKILL);
    ExpectAllEndWith(0);
    EXPECT_TRUE(WaitForUp(count, 1)) << Errors();
  }
}

struct TakenPortTest : NodesDeathTest, ::testing::WithParamInterface<const char*> {};

TEST_P(TakenPortTest, AnotherNodeMayTakeTheCoordinatorsPort) {
  job[1] = "--node-timeout=2";  // after it, workers of the unknown round are over
  std::vector<std::string> flags = {"-n1", "--rdzv-backend=c10d",
                                    "--rdzv-endpoint=localhost:" + port};
  std::vector<std::string> host_flags = flags;
  host_flags.push_back(GetParam());
  Job& host = Start(host_flags, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitFor([&] { return ConnectionsTo(std::stoi(port)) == 1; })) << Errors();
  Start(flags, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  host.Signal(SIGSTOP);  // its guardian cannot start the next agent yet
  KillAgent(host, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return ConnectionsTo(std::stoi(port)) == 0; })) << Errors();
  Start(flags, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitFor([&] { return ConnectionsTo(std::stoi(port)) == 2; })) << Errors();
  host.Signal(SIGCONT);
  // Which two nodes run the next workers depends on the order in which they join.
  ASSERT_TRUE(WaitFor([&] { return Count(Read("up"), "\n") >= 4; })) << Errors();
  Touch("end");
  ExpectAllEndWith(0);
}

INSTANTIATE_TEST_SUITE_P(HostBy, TakenPortTest,
                         ::testing::Values("--rdzv-conf=last_call_timeout=1",
                                           "--rdzv-conf=is_host=1"));

// The peer fails as PyTorch does, and cannot report it: the coordinator is dead.
TEST_F(NodesDeathTest, AFailureThatTheCoordinatorsDeathCausesIsNotTheEnd) {
  const std::string script = LosesItsPeer(1);
  Job& host = StartHost({"-n1", "--node-rank=0"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForConnection()) << Errors();
  host.Signal(SIGSTOP);  // its guardian cannot start the next agent yet
  KillAgent(host, SIGKILL);
  ASSERT_TRUE(WaitForNoWorker(guest)) << Errors();
  host.Signal(SIGCONT);
  for (const auto& node : nodes) {
    EXPECT_TRUE(node->WaitForErr("lost its peer, exit code 1\n")) << Errors();
  }
  Touch("end");
  ExpectAllEndWith(0);
  for (const auto& node : nodes) {
    EXPECT_THAT(node->Err(), Not(HasSubstr("next: the end")));
  }
}

TEST_F(NodesDeathTest, AReportIsKeptUntilThereIsACoordinatorAgain) {
  const std::string script = Stamped(
      "[ $A = 0 ] || { until [ -e end ]; do sleep 0.01; done; exit 0; }\n"
      "[ $RANK = 1 ] || exec sleep 1000\nuntil [ -e fail ]; do sleep 0.01; done\n"
      "echo RuntimeError: Connection closed by peer >&2\nexit 1");
  Job& host = StartHost({"-n1", "--node-rank=0"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  host.Signal(SIGSTOP);  // its guardian cannot start the next agent yet
  KillAgent(host, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return ConnectionsTo(std::stoi(port)) == 0; })) << Errors();
  Touch("fail");
  ASSERT_TRUE(WaitForNoWorker(guest)) << Errors();
  host.Signal(SIGCONT);
  for (const auto& node : nodes) {
    EXPECT_TRUE(node->WaitForErr("lost its peer, exit code 1\n")) << Errors();
    EXPECT_TRUE(node->WaitForErr("next: restart 1 of 3")) << Errors();
  }
  Touch("end");
  ExpectAllEndWith(0);
}

TEST_F(NodesDeathTest, TheCoordinatorGoesOnAtTheStoresPort) {
  auto start = [&](const std::string& node_rank) -> Job& {
    return Start({"--master-addr=localhost", "--master-port=" + port, "--node-rank=" + node_rank},
                 Stamped(kSecondTimeLucky));
  };
  Job& first = start("0");
  start("1");
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillAgent(first, SIGKILL);
  ExpectAllEndWith(0);
  EXPECT_TRUE(WaitForUp(2, 1)) << Errors();
}

TEST_F(NodesDeathTest, BothAgentsMayDieAtOnce) {
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillAgent(host, SIGKILL);
  KillAgent(guest, SIGKILL);
  ExpectAllEndWith(0);
}

TEST_F(NodesDeathTest, AgentsDieUntilTheBudgetIsUsedUp) {
  Job& host = StartHost({"-n1"}, Stamped("exec sleep 1000"));
  Job& guest = StartGuest({"-n1"}, Stamped("exec sleep 1000"));
  Job* victims[] = {&guest, &host, &guest, &guest};
  for (int attempt = 0; attempt < 4; ++attempt) {
    ASSERT_TRUE(WaitForUp(2, attempt)) << attempt << Errors();
    KillAgent(*victims[attempt], SIGKILL);
  }
  ExpectAllEndWith(205);
}

TEST_F(NodesDeathTest, TooFewNodesAreLeftAndNoneComes) {
  job = {"--nnodes=2", "--node-timeout=1"};
  conf = ",join_timeout=2";
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillHost(guest);
  EXPECT_EQ(host.Wait(), Code(202)) << Errors();
  EXPECT_THAT(host.Err(), HasSubstr("gave up waiting for nodes: 1 of 2 nodes are here after"));
}

TEST_F(NodesDeathTest, ALostNodeMayBeTheEnd) {
  job = {"--nnodes=1:2", "--node-timeout=1", "--last-call=10", "--on-lost-node=stop"};
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillHost(guest);
  EXPECT_EQ(host.Wait(), Code(202)) << Errors();
}

TEST_F(NodesDeathTest, WithoutTheCoordinatorsHostTheOthersEnd) {
  job = {"--nnodes=3", "--node-timeout=1"};
  Job& host = StartHost({"-n1"}, Stamped("trap '' TERM; exec sleep 1000"));
  Job& second = StartGuest({"-n1"}, Stamped("trap '' TERM; exec sleep 1000"));
  Job& third = StartGuest({"-n1"}, Stamped("trap '' TERM; exec sleep 1000"));
  ASSERT_TRUE(WaitForUp(3, 0)) << Errors();
  KillHost(host);
  EXPECT_EQ(second.Wait(), Code(206)) << Errors();
  EXPECT_EQ(third.Wait(), Code(206)) << Errors();
  EXPECT_THAT(second.Err(), HasSubstr("lost the coordinator"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
}

TEST_F(NodesDeathTest, AnotherJobWhereTheCoordinatorWasIsTriedForTheNodeTimeout) {
  // A twelfth of it is all that a busy machine may keep the agent from killing its workers.
  job[1] = "--node-timeout=12";
  Job& host = StartHost({"-n1"}, Stamped("exec sleep 1000"));
  Job& guest = StartGuest({"-n1"}, Stamped("exec sleep 1000"));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillHost(host);
  Job& other = StartHost({"-n1", "--rdzv-id=another"}, "exit 0");
  EXPECT_EQ(guest.Wait(milliseconds(60'000)), Code(206)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("job \"another\" is there, this node is of job \"none\"; "
                                     "trying again for up to 12.0 s\n"))
      << Errors();
  other.Signal(SIGINT);
  EXPECT_TRUE(other.Wait().has_value());
}

TEST_F(NodesDeathTest, AReplacementTakesTheLostNodesPlace) {
  job = {"--nnodes=2", "--node-timeout=1"};
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& lost = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillHost(lost);
  Job& other = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(other.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(2, 1)) << Errors();
  EXPECT_EQ(Overlaps(), "");
}

// --- Silence

TEST_F(NodesDeathTest, AStoppedAgentIsKilledByItsGuardian) {
  job = {"--nnodes=2", "--node-timeout=1.5", "--max-restarts=3"};
  StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillAgent(guest, SIGSTOP);
  ExpectAllEndWith(0);
  EXPECT_THAT(guest.Err(), HasSubstr("the agent (pid "));
}

TEST_F(NodesDeathTest, AStoppedCoordinatorIsKilledByItsGuardian) {
  job = {"--nnodes=2", "--node-timeout=3", "--max-restarts=3"};
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillAgent(host, SIGSTOP);
  ExpectAllEndWith(0);
  EXPECT_THAT(host.Err(), ContainsRegex("silent for .* \\(state T.*\\) and was killed"));
}

TEST_F(NodesDeathTest, AShortStopOfAnAgentIsNothing) {
  std::string script = "until [ -e end ]; do echo x >>steps.$RANK; sleep 0.01; done";
  Job& host = StartHost({"-n1"}, Stamped(script));
  Job& guest = StartGuest({"-n1"}, Stamped(script));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  for (Job* node : {&host, &guest}) {
    pid_t agent = AgentOf(*node);
    kill(agent, SIGSTOP);
    size_t steps = Read("steps.0").size();
    ASSERT_TRUE(WaitFor([&] { return Read("steps.0").size() > steps + 40; }));
    kill(agent, SIGCONT);
  }
  Touch("end");
  ExpectAllEndWith(0);
  EXPECT_TRUE(WaitForUp(0, 1)) << Errors();
}

// Ctrl-Z stops the guardian, but not the connections of its agent.
TEST_F(NodesDeathTest, AStoppedGuardianIsNothing) {
  Job& host = StartHost({"-n1"}, Stamped(kUntilEnd));
  StartGuest({"-n1"}, Stamped(kUntilEnd));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  host.Signal(SIGSTOP);
  Touch("end");
  EXPECT_EQ(nodes[1]->Wait(), Code(0)) << Errors();
  host.Signal(SIGCONT);
  ExpectAllEndWith(0);
}

TEST_F(NodesDeathTest, WorkersOfAllNodesHearOfADeathBeforeTermComes) {
  std::string mourner = "exec " + test::Program("mourner") + " handled 1";
  Job& host = StartHost({"-n1", "--shutdown-timeout=2", "--max-restarts=0"}, mourner);
  Job& guest = StartGuest({"-n2", "--shutdown-timeout=2", "--max-restarts=0"}, mourner);
  EXPECT_EQ(host.Wait(), Code(128 + SIGKILL)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(128 + SIGKILL)) << Errors();
  std::string out = host.Out() + guest.Out();
  EXPECT_EQ(Count(out, "TERM, told\n"), 2) << out;
  EXPECT_THAT(out, Not(HasSubstr("not told")));
  EXPECT_EQ(Count(out, "wait for key never: rank 1 "), 2) << out;
}

}  // namespace
}  // namespace rankrun::testing
