// The guardian replaces a dead agent as long as the restart budget allows.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A worker that lives in the first attempt and succeeds in later ones.
constexpr const char* kSecondTimeLucky =
    "echo up $RANK $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_RUN_ID; "
    "test $TORCHELASTIC_RESTART_COUNT = 0 || exit 0; setsid sleep 1000 & sleep 1000";

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool IsStopped(pid_t pid) {
  std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
  return !stat.empty() && stat[stat.rfind(')') + 2] == 'T';
}

struct AgentDeathTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  // The guardian may have a helper process as well.
  static pid_t AgentOf(const Job& run) {
    for (pid_t child : ChildrenOf(run.pid())) {
      if (ReadText("/proc/" + std::to_string(child) + "/comm") == "rankrun-agent\n") return child;
    }
    return 0;
  }
  static void KillAgent(const Job& run) {
    pid_t agent = 0;
    ASSERT_TRUE(WaitFor([&] { return (agent = AgentOf(run)) != 0; }));
    kill(agent, SIGKILL);
  }
  bool NoFolderIsLeft() const { return std::filesystem::is_empty(folder.path()); }

  ScratchFolder folder;  // TMPDIR of the job
  std::map<std::string, std::string> variables{{"TMPDIR", folder.path()}};
};

TEST_F(AgentDeathTest, IsARestartIfThereIsOneLeft) {
  Job run({.arguments = Shell({"-n", "2", "--max-restarts", "3"}, kSecondTimeLucky),
           .variables = variables});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  KillAgent(run);
  EXPECT_EQ(run.Wait(), Code(0)) << run.Err();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  EXPECT_THAT(run.Err(),
              ContainsRegex("rankrun: the agent \\(pid [0-9]+\\) was killed by SIGKILL; [0-9]+ "
                            "processes below it were killed, nothing of the job is left; starting "
                            "again: restart 1 of 3\n"));
  EXPECT_THAT(run.Out(), AllOf(HasSubstr("up 0 1"), HasSubstr("up 1 1")));
  // Both attempts had the same run id.
  std::istringstream lines(run.Out());
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(line.rfind(' ')));
  EXPECT_EQ(names.size(), 1u);
  EXPECT_TRUE(NoFolderIsLeft());
}

TEST_F(AgentDeathTest, IsTheEndWhenTheBudgetIsUsedUp) {
  Job run({.arguments = Shell({"--max-restarts", "1"},
                              "echo up $TORCHELASTIC_RESTART_COUNT; exec sleep 1000"),
           .variables = variables});
  for (const char* up : {"up 0", "up 1"}) {
    ASSERT_TRUE(run.WaitForOut(up)) << run.Err();
    KillAgent(run);
  }
  EXPECT_EQ(run.Wait(), Code(205));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("in the middle of the job"),
                               HasSubstr("nothing of the job is left; 1 of 1 restarts used\n")));
  EXPECT_TRUE(NoFolderIsLeft());
}

TEST_F(AgentDeathTest, CountsTogetherWithTheWorkersFailures) {
  Job run({.arguments = Shell({"--max-restarts", "2"},
                              "echo up $TORCHELASTIC_RESTART_COUNT; "
                              "test $TORCHELASTIC_RESTART_COUNT = 0 && exit 3; "
                              "test $TORCHELASTIC_RESTART_COUNT = 2 && exit 4; exec sleep 1000"),
           .variables = variables});
  ASSERT_TRUE(run.WaitForOut("up 1")) << run.Err();
  KillAgent(run);
  EXPECT_EQ(run.Wait(), Code(4));
  EXPECT_THAT(run.Err(),
              AllOf(HasSubstr("next: restart 1 of 2"), HasSubstr("starting again: restart 2 of 2"),
                    HasSubstr("next: the end, 2 of 2 restarts used")));
}

TEST_F(AgentDeathTest, DuringARequestToStopIsTheEnd) {
  Job run({.arguments = Shell({"--max-restarts", "3"}, "echo up; exec sleep 1000"),
           .variables = variables});
  ASSERT_TRUE(run.WaitForOut("up"));
  // The guardian finds the signal and the death together.
  run.Signal(SIGSTOP);
  ASSERT_TRUE(WaitFor([&] { return IsStopped(run.pid()); }));
  KillAgent(run);
  run.Signal(SIGINT);
  run.Signal(SIGCONT);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = true, .value = SIGINT}));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("was killed by SIGKILL; "), Not(HasSubstr("starting"))));
  EXPECT_TRUE(NoFolderIsLeft());
}

TEST_F(AgentDeathTest, LeavesTheLogsOfEachAttemptInOneFolder) {
  std::vector<std::string> flags{"--max-restarts",    "1",           "--log-dir",
                                 folder.Path("logs"), "--redirects", "3"};
  Job run({.arguments =
               Shell(flags, "echo hello $TORCHELASTIC_RESTART_COUNT; : > " + folder.Path("up") +
                                "; test $TORCHELASTIC_RESTART_COUNT = 1 || "
                                "exec sleep 1000"),
           .variables = variables});
  ASSERT_TRUE(WaitFor([&] { return std::filesystem::exists(folder.Path("up")); }));
  std::vector<std::string> runs;
  auto look = [&] {
    runs.clear();
    for (const auto& entry : std::filesystem::directory_iterator(folder.Path("logs"))) {
      runs.push_back(entry.path());
    }
    return runs.size() == 1 && ReadText(runs[0] + "/attempt_0/0/stdout.log") == "hello 0\n";
  };
  ASSERT_TRUE(WaitFor(look));
  KillAgent(run);
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_TRUE(look());
  EXPECT_EQ(ReadText(runs[0] + "/attempt_1/0/stdout.log"), "hello 1\n");
}

TEST_F(AgentDeathTest, IsAnEvent) {
  std::string file = folder.Path("events");
  Job run({.arguments = Shell({"--max-restarts", "3", "--events", file}, kSecondTimeLucky)});
  // A worker's output may precede its event.
  ASSERT_TRUE(WaitFor([&] { return Count(ReadText(file), "worker_started") == 1; }));
  KillAgent(run);
  EXPECT_EQ(run.Wait(), Code(0));
  std::vector<std::string> kinds;
  nlohmann::json restarted, ended;
  std::set<std::string> names;
  std::istringstream text(ReadText(file));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json event = nlohmann::json::parse(line);
    kinds.push_back(event["event"]);
    names.insert(event["run_id"]);
    if (kinds.back() == "agent_restarted") restarted = event;
    ended = event;
  }
  EXPECT_THAT(kinds,
              ElementsAre("job_started", "attempt_started", "worker_started", "agent_restarted",
                          "attempt_started", "worker_started", "worker_ended", "job_ended"));
  EXPECT_EQ(names.size(), 1u);
  EXPECT_EQ(restarted["incarnation"], 1);
  EXPECT_EQ(restarted["number"], 1);
  EXPECT_EQ(restarted["of"], 3);
  EXPECT_THAT(restarted["why"], HasSubstr("was killed by SIGKILL"));
  EXPECT_EQ(ended["restarts"], 1);
}

TEST_F(AgentDeathTest, WithoutARestartIsTheLastEvent) {
  const std::string file = folder.Path("events");
  Job run(
      {.arguments = Shell({"--rdzv-id", "last", "--events", file}, "echo up; exec sleep 1000")});
  ASSERT_TRUE(run.WaitForOut("up")) << run.Err();
  KillAgent(run);
  EXPECT_EQ(run.Wait(), Code(205));
  const std::string events = ReadText(file);
  const size_t last = events.rfind('\n', events.size() - 2) + 1;
  const auto ended = nlohmann::json::parse(events.substr(last));
  EXPECT_EQ(ended["event"], "job_ended");
  EXPECT_EQ(ended["run_id"], "last");
  EXPECT_EQ(ended["exit_code"], 205);
  EXPECT_EQ(ended["restarts"], 0);
  EXPECT_THAT(ended["why"], ContainsRegex("^the agent \\(pid [0-9]+\\) was killed by SIGKILL in "
                                          "the middle of the job$"));
}

// RANKRUN_RANDOM_RUNS: number of runs.
TEST_F(AgentDeathTest, AtAnyMomentLosesNoRestartAndLeavesNothing) {
  const char* wanted = std::getenv("RANKRUN_RANDOM_RUNS");
  int runs = wanted != nullptr ? std::atoi(wanted) : 50;
  int finished = 0;
  unsigned seed = 20240117;
  for (int i = 0; i < runs; ++i, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    ScratchFolder flags;
    std::string go = flags.Path("go");
    std::string wait = "until [ -e " + go + " ]; do sleep 0.01; done";
    Job run({.arguments = Shell(
                 {"-n", "2", "--max-restarts", "4"},
                 "setsid sh -c '" + wait + "' & " + wait + "; echo $TORCHELASTIC_RESTART_COUNT"),
             .variables = variables});
    unsigned kills = 1 + static_cast<unsigned>(random() % 3);
    for (unsigned k = 0; k < kills; ++k) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      if (pid_t agent = AgentOf(run); agent != 0) kill(agent, SIGKILL);
    }
    std::ofstream(go) << "go";
    auto exit = run.Wait();
    ASSERT_TRUE(NothingIsLeft(milliseconds(0)));
    int restarts = Count(run.Err(), "starting again");
    // The agent died before it had reported its budget, and perhaps its folder, to
    // the guardian. The job ends then.
    if (exit == Code(205) && restarts == 0) {
      for (const auto& left : std::filesystem::directory_iterator(folder.path())) {
        std::filesystem::remove_all(left);
      }
      continue;
    }
    ASSERT_TRUE(NoFolderIsLeft());
    ASSERT_EQ(exit, Code(0)) << run.Err();
    std::string word = std::to_string(restarts) + "\n";
    EXPECT_THAT(run.Out(), HasSubstr(word)) << run.Err();
    finished += 1;
  }
  EXPECT_GT(finished, 0);
}

}  // namespace
}  // namespace rankrun::testing
