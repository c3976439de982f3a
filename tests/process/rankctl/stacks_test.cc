// rankctl shows the stacks of the ranks of a job, as its agent takes them.

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kStacked = test::Program("stacked");

struct RankctlStacksTimingTest : ::testing::Test {
  RankctlStacksTimingTest() { AdoptOrphans(); }

  // Starts `rankrun <flags> /bin/sh -c script` and waits until all workers have started.
  Job& Start(const std::vector<std::string>& flags, const std::string& script) {
    jobs.push_back(std::make_unique<Job>(
        Job::Options{.arguments = Shell(flags, script), .variables = variables}));
    EXPECT_TRUE(WaitFor([&] {
      const std::string status = Run({"status"});
      return status.find(": running, ") != std::string::npos &&
             status.find("starting") == std::string::npos;
    })) << jobs.back()->Err();
    return *jobs.back();
  }
  // Returns both outputs of rankctl.
  std::string Run(std::vector<std::string> arguments) {
    Job command({.arguments = std::move(arguments), .variables = variables, .program = kRankctl});
    code = command.Wait();
    return command.Out() + command.Err();
  }
  std::string Stacks(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "stacks");
    return Run(std::move(arguments));
  }
  // Makes a program that the agents of further jobs start in the place of rankrun-stacks.
  void ReplaceHelper(const std::string& script) {
    folder.Script("rankrun-stacks", script);
    variables["RANKRUN_PLUGIN_DIR"] = folder.path();
  }

  ScratchFolder folder;
  std::map<std::string, std::string> variables{{"RANKRUN_SOCKET_DIR", folder.Path("rankrun")}};
  std::vector<std::unique_ptr<Job>> jobs;
  std::optional<ProcessExit> code;  // of the last rankctl
};

TEST_F(RankctlStacksTimingTest, RanksAreShownAndOnesThatHaveEndedNamed) {
  Start({"-n3"}, "[ $RANK = 1 ] && exit 0; echo up; exec " + kStacked + " lock");
  std::string text;
  auto are_shown = [&] {  // rank 1 has ended, and the others are where they stay
    text = Stacks({});
    return text.find("ranks 0, 2 (here rank 0): pid ") == 0 &&
           text.find("\nrank 1: it has ended: exit code 0\n") != std::string::npos;
  };
  ASSERT_TRUE(WaitFor(are_shown)) << text;
  EXPECT_THAT(text, ContainsRegex("pthread_mutex_lock.*\n +LockTwice.*\n +TakeTheLock.*\n +main"));
  EXPECT_EQ(code, Code(1)) << "not of all";
  EXPECT_THAT(Stacks({"2"}), AllOf(StartsWith("rank 2: pid "), Not(HasSubstr("rank 0"))));
  EXPECT_EQ(code, Code(0));
  EXPECT_THAT(Stacks({"0", "--json"}), StartsWith("{\"ranks\":[0],\"processes\":[{\"rank\":0,"));
}

TEST_F(RankctlStacksTimingTest, ANumberIsARankOfTheJobOrAPid) {
  Job& job = Start({"-n2"}, "exec sleep 1000");
  const std::vector<pid_t> workers = job.Workers(2);
  ASSERT_EQ(workers.size(), 2U);
  const std::string pid = std::to_string(workers[0]);
  EXPECT_THAT(Stacks({pid}), StartsWith("pid " + pid + " ("));
  EXPECT_THAT(Stacks({"--pid", pid}), StartsWith("pid " + pid + " ("));
  EXPECT_THAT(Stacks({"--pid", "1"}), StartsWith("pid 1 ("));
  EXPECT_THAT(Stacks({"1"}), StartsWith("rank 1: pid "));
  EXPECT_THAT(Stacks({"1", pid}), HasSubstr("1 is a rank of a job and " + pid + " is not"));
  EXPECT_EQ(code, Code(2));
  EXPECT_THAT(Stacks({"--job", std::to_string(job.pid()), pid}),
              HasSubstr("no rank " + pid + " in job "));
  EXPECT_EQ(code, Code(1));
  EXPECT_THAT(Stacks({"--job=j", "--pid", pid}), HasSubstr("exclude each other"));
  EXPECT_THAT(Stacks({"--pid"}), HasSubstr("--pid needs a pid"));
  EXPECT_THAT(Stacks({"--pid", "0"}), HasSubstr("0 is no pid"));
  EXPECT_THAT(Stacks({"12x"}), HasSubstr("\"12x\" is no rank and no pid"));
  EXPECT_EQ(code, Code(2));
}

TEST_F(RankctlStacksTimingTest, OfASilentAgentNumbersAreRanks) {
  Job& job = Start({}, "exec sleep 1000");
  const pid_t agent = job.Agent();
  kill(agent, SIGSTOP);
  const std::string text = Run({"stacks", "1"});
  kill(agent, SIGCONT);
  EXPECT_THAT(text, AllOf(HasSubstr("the agent (pid " + std::to_string(agent) +
                                    ") has not answered for 2.0 s"),
                          HasSubstr("; --pid takes pids\n"), Not(HasSubstr("thread"))));
  EXPECT_EQ(code, Code(1));
}

TEST_F(RankctlStacksTimingTest, WithoutAJobThereAreNoRanks) {
  EXPECT_THAT(Stacks({}), HasSubstr("no job of this user runs on this host"));
  EXPECT_EQ(code, Code(1));
}

TEST_F(RankctlStacksTimingTest, AHelperThatFailsOrIsLateIsSaid) {
  ReplaceHelper("exit 1");
  Job& job = Start({"-n2"}, "exec sleep 1000");
  EXPECT_THAT(Stacks({}), HasSubstr("ranks 0, 1: rankrun-stacks has ended without an answer"));
  EXPECT_EQ(code, Code(1));
  // The second one asks meanwhile.
  ReplaceHelper("echo up > " + folder.Path("up") + "; exec sleep 1000");
  Job first({.arguments = {"stacks", "0"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(WaitFor([&] { return std::filesystem::exists(folder.Path("up")); }));
  EXPECT_THAT(Stacks({"0"}), HasSubstr("rank 0: another rankctl is taking stacks"));
  EXPECT_EQ(first.Wait(), Code(1));
  EXPECT_THAT(first.Out(), HasSubstr("rank 0: there was no time to read its stack"));
  job.Signal(SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM));
  jobs.clear();
  EXPECT_TRUE(NothingIsLeft(milliseconds(20'000)));
}

TEST_F(RankctlStacksTimingTest, AJobThatEndsMeanwhileEndsTheHelper) {
  ReplaceHelper("echo up > " + folder.Path("up") + "; exec sleep 1000");
  Job& job = Start({"-n2"}, "exec sleep 1000");
  Job rankctl({.arguments = {"stacks"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(WaitFor([&] { return std::filesystem::exists(folder.Path("up")); }));
  job.Signal(SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(job.Err(), Not(HasSubstr("leftover")));
  EXPECT_EQ(rankctl.Wait(), Code(1));
  EXPECT_TRUE(NothingIsLeft(milliseconds(20'000)));
}

TEST_F(RankctlStacksTimingTest, OfALargeJobRanksAreNamed) {
  Start({"-n65", "--rdzv-id=large"}, "exec sleep 1000");
  EXPECT_THAT(Stacks({}),
              HasSubstr("job large has 65 ranks; one command takes the stacks of at most "
                        "64 ranks; name some, such as rankctl stacks 0-63"));
  EXPECT_EQ(code, Code(2));
  std::string text;
  EXPECT_TRUE(WaitFor([&] {
    text = Stacks({"1-64"});
    return text.find("ranks 1-64 (here rank 1): pid ") == 0;
  })) << text;
}

}  // namespace
}  // namespace rankrun::testing
